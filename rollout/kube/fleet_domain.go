// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/rollout/controller"
)

// NewNodeCache is like [NewShadowCache], of the Nodes whose labels match alone: the others are neither listed nor watched. It is for a [Fleet] of a domain:
// see [Fleet.Of].
func NewNodeCache(client dynamic.Interface, of labels.Selector) *Cache[corev1.Node] {
	matching := func(o *metav1.ListOptions) { o.LabelSelector = of.String() }
	return newCache[corev1.Node](client, "Node", nodesResource(), matching)
}

func nodesResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
}

// Of returns the Fleet of one disruption domain: the Nodes whose labels match, of which the percentages of its rollouts are, and those that have one of
// the domain's records, whatever their labels are by now, so that what was begun comes to its end. Call it before the Fleet is used. The list of
// [NewFleet] may be of all Nodes, or of a [NewNodeCache] with the same selector. Then a Node that has lost its labels and still has a record
// is read from the API server, with one call for each List.
func (f *Fleet) Of(nodes labels.Selector, records controller.Shadows) *Fleet {
	return &Fleet{nodes: f.nodes, list: f.list, selector: nodes, records: records}
}

// within are those of the Nodes that are of the domain, and those of it that are not among them.
func (f *Fleet) within(ctx context.Context, seen []*corev1.Node) ([]*corev1.Node, error) {
	if f.selector == nil {
		return seen, nil
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
func (f *Fleet) read(ctx context.Context, name string) (*corev1.Node, error) {
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
