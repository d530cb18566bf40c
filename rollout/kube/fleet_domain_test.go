// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
)

// The fleet of a domain has the Nodes with its labels, and those that lost them as long as they have a record in the domain; its cache neither lists nor
// watches the others (R-RO-04).
func TestFleetOfADomain(t *testing.T) {
	b := newBed(t)
	selector := labels.SelectorFromSet(labels.Set{"domain": t.Name()})
	mine := must1(kube.NewRecords(b.shadows.In("fd-mine"), nil))
	for _, name := range []string{"fd-in", "fd-left", "fd-out", "fd-theirs"} {
		domain := "another"
		if name == "fd-in" || name == "fd-left" {
			domain = t.Name()
		}
		_, err := b.env.CreateNode(b.ctx(), name, func(n *corev1.Node) { n.Labels = labels.Set{"domain": domain} })
		b.must(err)
	}
	b.record("fd-mine", "fd-left")
	b.record("fd-other", "fd-theirs")
	cache := must1(kube.NewNodeCache(b.client, selector))
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- cache.Run(ctx, func() {}) }()
	defer func() { stop(); b.must(<-ended) }()
	every := func() []*corev1.Node {
		all, err := b.core.CoreV1().Nodes().List(b.ctx(), metav1.ListOptions{})
		b.must(err)
		var nodes []*corev1.Node
		for i := range all.Items {
			nodes = append(nodes, &all.Items[i])
		}
		return nodes
	}
	fleets := map[string]*kube.Fleet{
		"its own cache": must1(kube.NewFleet(b.client, cache.List)).Of(selector, mine), "a cache of all nodes": must1(kube.NewFleet(b.client, every)).Of(selector, mine),
	}
	b.eventually("the cache is filled", b.now(func() error { return b.cached(cache, "fd-in", "fd-left") }))
	b.fleetsHave(fleets, "fd-in", "fd-left")

	unlabel := []byte(`{"metadata":{"labels":{"domain":null}}}`)
	for _, name := range []string{"fd-in", "fd-left"} {
		_, err := b.core.CoreV1().Nodes().Patch(b.ctx(), name, types.MergePatchType, unlabel, metav1.PatchOptions{})
		b.must(err)
	}
	b.eventually("the cache has lost the nodes", b.now(func() error { return b.cached(cache) }))
	b.fleetsHave(fleets, "fd-left")

	// A record of a Node that is another one by now, or is gone, keeps nothing.
	b.must(b.core.CoreV1().Nodes().Delete(b.ctx(), "fd-left", metav1.DeleteOptions{}))
	b.fleetsHave(fleets)
	_, err := b.env.CreateNode(b.ctx(), "fd-left")
	b.must(err)
	b.fleetsHave(fleets)
}

// record makes the record of a Node in a domain.
func (b *bed) record(domain, node string) {
	b.t.Helper()
	n, err := b.core.CoreV1().Nodes().Get(b.ctx(), node, metav1.GetOptions{})
	b.must(err)
	_, err = b.shadows.In(domain).Create(b.ctx(), protocol.NewShadow(node, string(n.UID), protocol.Ledger{}))
	b.must(err)
}

func (b *bed) cached(cache *kube.Cache[corev1.Node], want ...string) error {
	var names []string
	for _, n := range cache.List() {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	if !cache.Synced() || !slices.Equal(names, want) {
		return fmt.Errorf("the cache has %q, want %q", names, want)
	}
	return nil
}

func (b *bed) fleetsHave(fleets map[string]*kube.Fleet, want ...string) {
	b.t.Helper()
	for name, f := range fleets {
		nodes, err := f.List(b.ctx())
		b.must(err)
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			b.t.Errorf("by %s the domain has %q, want %q", name, names, want)
		}
	}
}
