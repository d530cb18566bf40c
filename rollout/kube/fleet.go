// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/internal/resourceversion"

	"github.com/belayproject/belay/rollout/controller"
)

var _ controller.Fleet = (*Fleet)(nil)

// A Fleet is the Nodes of a disruption domain, as a controller sees and marks them: [controller.Fleet].
type Fleet struct {
	nodes objects
	list  func() []*corev1.Node
	own   written[*corev1.Node]
	// selector and records are those of a domain: see [Fleet.Of].
	selector labels.Selector
	records  controller.Shadows
}

// NewFleet returns the Nodes that list returns: from a cache, such as that of package drain/kube, or a lister. They are not changed. Nodes
// that this Fleet has written are seen as they were written, until the cache has come so far. They are all of one domain, unless [Fleet.Of] says which.
func NewFleet(client dynamic.Interface, list func() []*corev1.Node) *Fleet {
	return &Fleet{nodes: objects{"Node", client.Resource(nodesResource())}, list: list}
}

// List implements [controller.Fleet].
func (f *Fleet) List(ctx context.Context) ([]controller.Node, error) {
	seen, err := f.within(ctx, f.own.over(f.list()))
	if err != nil {
		return nil, err
	}
	all := make([]controller.Node, len(seen))
	for i, n := range seen {
		all[i] = nodeOf(n)
	}
	return all, ctx.Err()
}

func nodeOf(n *corev1.Node) controller.Node {
	seen := controller.Node{
		Name: n.Name, UID: string(n.UID), Labels: n.Labels, Annotations: n.Annotations, Created: n.CreationTimestamp.Time,
		Unschedulable: n.Spec.Unschedulable, Version: n.ResourceVersion,
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			seen.Ready = c.Status == corev1.ConditionTrue
		}
	}
	return seen
}

// Gone implements [controller.Fleet].
func (f *Fleet) Gone(ctx context.Context, name, uid string) (bool, error) {
	n, err := f.nodes.get(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && string(n.GetUID()) != uid, err
}

// Annotate implements [controller.Fleet].
func (f *Fleet) Annotate(ctx context.Context, read controller.Node, change map[string]*string) (controller.Node, error) {
	version, ok := read.Version.(string)
	if !ok {
		return read, fmt.Errorf("writing Node %q: the version %v is not of this Fleet", read.Name, read.Version)
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": read.UID, "resourceVersion": version, "annotations": change}})
	if err != nil {
		return read, fmt.Errorf("writing Node %q: %w", read.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	options := metav1.PatchOptions{FieldManager: FieldManager, FieldValidation: metav1.FieldValidationStrict}
	u, err := f.nodes.client.Patch(ctx, read.Name, types.MergePatchType, body, options)
	if err := f.nodes.written("writing", read.Name, err); err != nil {
		return read, err
	}
	var next corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &next); err != nil {
		return read, fmt.Errorf("reading Node %q: %w", read.Name, err)
	}
	f.own.wrote(&next)
	return nodeOf(&next), nil
}

// written are objects as this process has written them, by name.
type written[T metav1.Object] struct {
	mu  sync.Mutex
	all map[string]T
}

func (w *written[T]) wrote(o T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[string]T{}
	}
	w.all[o.GetName()] = o
}

// over lays what was written over what a cache has, and forgets what the cache has too.
func (w *written[T]) over(cached []T) []T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) == 0 {
		return cached
	}
	next := make([]T, len(cached))
	seen := map[string]bool{}
	for i, o := range cached {
		next[i] = o
		mine, ok := w.all[o.GetName()]
		if ok && mine.GetUID() == o.GetUID() && behind(o, mine) {
			next[i], seen[o.GetName()] = mine, true
		}
	}
	for name := range w.all {
		if !seen[name] {
			delete(w.all, name)
		}
	}
	return next
}

// behind reports whether an object is an older version than another one of the same UID.
func behind(o, than metav1.Object) bool {
	order, err := resourceversion.Compare(o.GetResourceVersion(), than.GetResourceVersion())
	return err == nil && order < 0
}
