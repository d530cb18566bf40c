// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/option"
)

// NodeConfigSource takes the wanted config from the NodeConfig that has the name of the node.
//
// A NodeConfig without a source asks for the local config. No NodeConfig at all is [configsync.ErrMissing]: an object
// that was deleted by mistake must not reset the node. A server without its CustomResourceDefinition counts as
// unreachable.
//
// While its Watch runs, what was read or brought is not read again for two minutes after the API server's last word on
// that watch, which is a bookmark a minute where nothing happens; it is never older than what was read before.
//
// It may be used concurrently.
type NodeConfigSource struct {
	caller
	target target
	seen   *seen
	shared *sharedInformer // nil: a watch of its own
}

// NewNodeConfigSource returns the source of the named node. Its errors are mistakes of the caller.
func NewNodeConfigSource(client dynamic.Interface, node string, o Options) (*NodeConfigSource, error) {
	c, err := newNodeCaller("configsync/kube.NewNodeConfigSource", client, node, o)
	if err != nil {
		return nil, fmt.Errorf("making a NodeConfig source: %w", err)
	}
	shared, err := newShared("Options.NodeConfigs", o.NodeConfigs)
	if err != nil {
		return nil, fmt.Errorf("making a NodeConfig source: %w", err)
	}
	return &NodeConfigSource{c, nodeConfigOf(node), &seen{}, shared}, nil
}

func nodeConfigOf(node string) target {
	return target{kind: v1alpha1.NodeConfigKind, name: node, resource: v1alpha1.NodeConfigsResource}
}

// StatusReporter returns a reporter to the status of the same NodeConfig, which compares with what the source has seen
// last instead of reading it, and writes to that version alone. It is [NewStatusReporter] for an agent whose source is
// the NodeConfig, and asks the API server less.
func (s *NodeConfigSource) StatusReporter() configsync.Reporter {
	return &statusReporter{s.caller, s.target, s.seen}
}

// Desired reads the NodeConfig. Errors are as [configsync.Source] says.
func (s *NodeConfigSource) Desired(ctx context.Context) (*configsync.Spec, error) {
	if s.client == nil {
		return nil, option.NotMade("configsync/kube.NodeConfigSource.Desired", "configsync/kube.NewNodeConfigSource")
	}
	if err := s.shared.findProblem(); err != nil {
		return nil, fmt.Errorf("getting %s: %w", s.target, err)
	}
	u, err := s.getSeen(ctx, s.target, s.seen)
	if err != nil {
		return nil, err
	}
	return specAt(u, u.GetGeneration(), "spec", "source")
}

// Watch calls changed when the NodeConfig is another one or its spec changed. It returns nil when ctx ends, and not
// before: it goes on through restarts of the API server, and where the kind isn't served yet. Over Options.NodeConfigs
// it returns an [InformerError] where that does not run or does not show the NodeConfig as it is; Desired returns the
// same until another Watch finds it in order.
func (s *NodeConfigSource) Watch(ctx context.Context, changed func()) error {
	if s.client == nil {
		return option.NotMade("configsync/kube.NodeConfigSource.Watch", "configsync/kube.NewNodeConfigSource")
	}
	fingerprint := func(u *unstructured.Unstructured) string {
		return fmt.Sprintf("%s %d", u.GetUID(), u.GetGeneration())
	}
	if s.shared == nil {
		return s.watchSeen(ctx, s.target, s.seen, fingerprint, changed)
	}
	call, remedy := "configsync/kube.NodeConfigSource.Watch", "what looks again"
	if err := option.CheckRequired(call, "changed", changed, remedy); err != nil {
		return err
	}
	return s.shared.watchTarget(ctx, s.caller, s.target,
		trigger{name: s.target.name, seen: s.seen, fingerprint: fingerprint, changed: changed})
}

// specAt reads the source at the path in u. Its absence is the empty source.
func specAt(u *unstructured.Unstructured, generation int64, path ...string) (*configsync.Spec, error) {
	name := strings.Join(path, ".")
	value, found, err := unstructured.NestedFieldNoCopy(u.Object, path...)
	if err != nil {
		return nil, &configsync.InvalidError{Field: name, Problem: err.Error()}
	}
	if !found {
		return nil, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, &configsync.InvalidError{Field: name, Problem: err.Error()}
	}
	return specFrom(raw, name, generation)
}
