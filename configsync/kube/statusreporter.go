// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/option"
)

// ErrDropped means that the API server accepted a report and did not keep all of it.
var ErrDropped = errors.New("the API server dropped a part of what was written")

// errNoCondition guards against writing a status that was never filled in.
var errNoCondition = errors.New("the status has no condition yet")

type statusReporter struct {
	caller
	target target
	seen   *seen // nil: each report reads what the API server holds
}

// NewStatusReporter returns what reports to the status of the NodeConfig that has the name of the node. It compares
// with what the API server holds, and writes only a difference. It owns every field of the status that it sets, and
// leaves conditions of others alone.
//
// The error names what is missing. It may be used concurrently; of two reports at once, either may win.
func NewStatusReporter(client dynamic.Interface, node string, o Options) (configsync.Reporter, error) {
	c, err := newNodeCaller("configsync/kube.NewStatusReporter", client, node, o)
	if err != nil {
		return nil, fmt.Errorf("making a status reporter: %w", err)
	}
	return &statusReporter{caller: c, target: nodeConfigOf(node)}, nil
}

// Report makes s the status. Errors wrap [configsync.ErrMissing] where there is no NodeConfig,
// [configsync.ErrForbidden], [ErrDropped] where the CustomResourceDefinition is older than this package, and
// [configsync.ErrUnreachable] where there was no answer.
func (r *statusReporter) Report(ctx context.Context, s configsync.Status) error {
	if r.client == nil {
		return option.NotMade("configsync/kube.NodeConfigSource.StatusReporter", "configsync/kube.NewNodeConfigSource")
	}
	if s.Condition.Status == "" {
		return fmt.Errorf("reporting to %s: %w", r.target, errNoCondition)
	}
	return unhurried(ctx, func(ctx context.Context) error { return r.report(ctx, s) })
}

func (r *statusReporter) report(ctx context.Context, s configsync.Status) error {
	u, err := r.getSeen(ctx, r.target, r.seen)
	if err != nil {
		return err
	}
	live := statusIn(u)
	want := StatusOf(s, live, r.now())
	if sameJSON(want, live) {
		return nil
	}
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want)
	if err != nil {
		return fmt.Errorf("encoding the status of %s: %w", r.target, err)
	}
	asked := r.seen.asking()
	got, err := r.applyStatus(ctx, r.target, asRead(u), body)
	if err != nil {
		r.seen.forget() // it may have landed, or met another version
		return err
	}
	r.seen.read(got, asked)
	if !sameJSON(want, statusIn(got)) {
		return fmt.Errorf("applying the status of %s: %w: install the CustomResourceDefinition of this version", r.target, ErrDropped)
	}
	return nil
}

// statusIn reads the status of u as far as it is ours: of the conditions ConfigOK alone. What can't be read is to be
// replaced.
func statusIn(u *unstructured.Unstructured) v1alpha1.NodeConfigStatus {
	var s v1alpha1.NodeConfigStatus
	raw, found, err := unstructured.NestedMap(u.Object, "status")
	if err != nil || !found || runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s) != nil {
		return v1alpha1.NodeConfigStatus{}
	}
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type != v1alpha1.ConditionConfigOK })
	return s
}

func sameJSON(a, b v1alpha1.NodeConfigStatus) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
