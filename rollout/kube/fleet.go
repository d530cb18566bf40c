// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/resourceversion"
	"github.com/belayproject/belay/rollout/controller"
)

var _ controller.Fleet = (*fleet)(nil)

// A fleet is the Nodes of a disruption domain, as a controller sees and marks them: [controller.Fleet].
type fleet struct {
	nodes objects
	list  func() []*corev1.Node
	own   written[*corev1.Node]
	// selector and records are those of a domain: see newFleet.
	selector labels.Selector
	records  controller.Shadows
}

// NewFleet returns the Nodes that list returns, which are all of one domain: from a cache, such as that of package drain/kube, or a lister.
// They are not changed. Nodes that this fleet has written are seen as they were written, until the cache has come so far. RunController
// makes the fleet of a domain whose Nodes a selector says: see [ControllerOptions].
func NewFleet(client dynamic.Interface, list func() []*corev1.Node) (controller.Fleet, error) {
	check := checkerFor("NewFleet")
	check.Require("client", client, clientRemedy)
	check.Require("list", list, "Nodes from a cache, such as Caches.Nodes")
	if err := check.Err(); err != nil {
		return nil, err
	}
	return newFleet(client, list, nil, nil), nil
}

// newFleet returns the Nodes of one disruption domain: those whose labels match, of which the percentages of its rollouts are, and those
// that have one of the domain's records, whatever their labels are by now, so that what was begun comes to its end. The list may be of
// all Nodes, or of those that match: a Node that has lost its labels and still has a record is read from the API server then, with one
// call for each List. A nil selector selects all Nodes.
func newFleet(client dynamic.Interface, list func() []*corev1.Node, nodes labels.Selector, records controller.Shadows) *fleet {
	return &fleet{nodes: objects{"Node", client.Resource(nodesResource())}, list: list, selector: nodes, records: records}
}

// List implements [controller.Fleet].
func (f *fleet) List(ctx context.Context) ([]controller.Node, error) {
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
func (f *fleet) Gone(ctx context.Context, name, uid string) (bool, error) {
	n, err := f.nodes.get(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && string(n.GetUID()) != uid, err
}

// Annotate implements [controller.Fleet].
func (f *fleet) Annotate(ctx context.Context, read controller.Node, change map[string]*string) (controller.Node, error) {
	version, ok := read.Version.(string)
	if !ok {
		return read, fmt.Errorf("writing Node %q: the version %v is not of this fleet", read.Name, read.Version)
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": read.UID, "resourceVersion": version, "annotations": change}})
	if err != nil {
		return read, fmt.Errorf("writing Node %q: %w", read.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	options := metav1.PatchOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
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

func nodesResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
}

// within are those of the Nodes that are of the domain, and those of it that are not among them.
func (f *fleet) within(ctx context.Context, seen []*corev1.Node) ([]*corev1.Node, error) {
	if f.selector == nil {
		return seen, nil
	}
	if err := option.CheckRequired("rollout/kube.RunController", "records", f.records, "those of the domain"); err != nil {
		return nil, err
	}
	shadows, err := f.records.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of the domain: %w", err)
	}
	kept := make(map[string]string, len(shadows)) // UID by name
	for i := range shadows {
		kept[shadows[i].Node] = shadows[i].UID
	}
	var all []*corev1.Node
	for _, n := range seen {
		uid, known := kept[n.Name]
		if known && uid == string(n.UID) || f.selector.Matches(labels.Set(n.Labels)) {
			all = append(all, n)
		}
		delete(kept, n.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		n, err := f.read(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case string(n.UID) == kept[name]:
			all = append(all, n)
		}
	}
	return all, nil
}

// read is a Node as the API server has it.
func (f *fleet) read(ctx context.Context, name string) (*corev1.Node, error) {
	u, err := f.nodes.get(ctx, name)
	if err != nil {
		return nil, err
	}
	var n corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &n); err != nil {
		return nil, fmt.Errorf("reading Node %q: %w", name, err)
	}
	return &n, nil
}
