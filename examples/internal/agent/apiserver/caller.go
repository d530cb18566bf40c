// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/v1alpha1"
)

// caller calls the API server for one node.
type caller struct {
	client  dynamic.Interface
	node    string
	timeout time.Duration // of one call
}

func newCaller(client dynamic.Interface, node string, timeout time.Duration) (caller, error) {
	if client == nil {
		return caller{}, errors.New("client must be set")
	}
	if problems := validation.IsDNS1123Subdomain(node); len(problems) > 0 {
		return caller{}, fmt.Errorf("node name %q: %s", node, problems[0])
	}
	return caller{client, node, timeout}, nil
}

// within gives ctx the deadline of one call.
func (c caller) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}

// target is an object that has the name of the node.
type target struct {
	kind     string
	resource schema.GroupVersionResource
}

func nodeTarget() target { return target{"Node", corev1.SchemeGroupVersion.WithResource("nodes")} }

// getObject reads the target from etcd, not from a cache of the API server.
func (c caller) getObject(ctx context.Context, t target) (*unstructured.Unstructured, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	u, err := c.client.Resource(t.resource).Get(ctx, c.node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("getting %s %q: %w", t.kind, c.node, kube.Classified(err))
	}
	return u, nil
}

// isNotServed tells a path that the API server does not know from an object that it does not have.
func isNotServed(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// statusIn reads the part of the status of u that an agent writes: of the conditions ConfigOK alone.
func statusIn(u *unstructured.Unstructured) v1alpha1.NodeConfigStatus {
	var s v1alpha1.NodeConfigStatus
	raw, found, err := unstructured.NestedMap(u.Object, "status")
	if err != nil || !found || runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s) != nil {
		return v1alpha1.NodeConfigStatus{}
	}
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool {
		return c.Type != v1alpha1.ConditionConfigOK
	})
	return s
}

func isSameStatus(a, b v1alpha1.NodeConfigStatus) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// clipText cuts s to at most limit bytes of valid UTF-8, and marks the cut.
func clipText(s string, limit int) string {
	const mark = "…"
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
