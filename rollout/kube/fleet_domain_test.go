// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
)

// The fleet of a domain has the Nodes with its labels, and those that lost them as long as they have a record in the domain
// (R-RO-04).
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
	list := func(of labels.Selector) func() []*corev1.Node {
		return func() []*corev1.Node {
			all, err := b.core.CoreV1().Nodes().List(b.ctx(), metav1.ListOptions{LabelSelector: of.String()})
			b.must(err)
			var nodes []*corev1.Node
			for i := range all.Items {
				nodes = append(nodes, &all.Items[i])
			}
			return nodes
		}
	}
	fleets := map[string]controller.Fleet{
		"those that match": kube.NewDomainFleet(b.client, list(selector), selector, mine),
		"all nodes":        kube.NewDomainFleet(b.client, list(labels.Everything()), selector, mine),
	}
	b.fleetsHave(fleets, "fd-in", "fd-left")

	unlabel := []byte(`{"metadata":{"labels":{"domain":null}}}`)
	for _, name := range []string{"fd-in", "fd-left"} {
		_, err := b.core.CoreV1().Nodes().Patch(b.ctx(), name, types.MergePatchType, unlabel, metav1.PatchOptions{})
		b.must(err)
	}
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

func (b *bed) fleetsHave(fleets map[string]controller.Fleet, want ...string) {
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
