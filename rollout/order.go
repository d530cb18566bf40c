// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"

	"github.com/belayproject/belay/rollout/protocol"
)

// canaryLabel with any value puts a node before the others of its stage.
const canaryLabel = "belay.dev/canary"

// defaultOrder is the order without [Policy].Order: the node of the controller itself last, broken nodes first, then those with the label belay.dev/canary,
// then zone by zone.
func defaultOrder(a, b *Node) int {
	return cmp.Or(
		cmp.Compare(number(a.Own), number(b.Own)),
		cmp.Compare(number(isBroken(b)), number(isBroken(a))),
		cmp.Compare(number(isCanary(b)), number(isCanary(a))),
		cmp.Compare(a.Labels[zoneLabel], b.Labels[zoneLabel]),
	)
}

// RollbackOrder is an order for going back: the node of the controller itself last, broken nodes first, then those that were touched last, be it by
// the rollback itself, then the default order.
func RollbackOrder(a, b *Node) int {
	a, b = orEmpty(a), orEmpty(b)
	return cmp.Or(
		cmp.Compare(number(a.Own), number(b.Own)),
		cmp.Compare(number(isBroken(b)), number(isBroken(a))),
		cmp.Compare(touched(b), touched(a)),
		defaultOrder(a, b),
	)
}

// orEmpty has an empty node in the place of nil.
func orEmpty(n *Node) *Node {
	if n == nil {
		return &Node{}
	}
	return n
}

// touched is the last attempt that the node has committed or refused, 0 for none.
func touched(n *Node) protocol.Attempt {
	if n.Shadow == nil {
		return 0
	}
	return n.Shadow.Report.Attempt
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func isBroken(n *Node) bool {
	return n.Shadow != nil && n.Shadow.Report.Phase == protocol.PhaseFailedBroken
}

func isCanary(n *Node) bool {
	_, ok := n.Labels[canaryLabel]
	return ok
}

// Bits of a place in the default order, from the most significant: stage, retried, own, not broken, not a canary, zone, group, node. [Policy.Validate] keeps
// the numbers of stages and groups to them; where there are more nodes or zones, nodes are compared one with another.
const (
	nodeBits  = 24
	groupBits = 12
	zoneBits  = 14
	stageBits = 64 - nodeBits - groupBits - zoneBits - 4
)

// order are the selected nodes in the order in which they are to go: by stage, fresh ones before those that have failed, by the order of the
// policy, by group, by name.
func (p *plan) order() []int32 {
	order := reuse(&p.mem.ordered, p.sizes.selected)[:0]
	if p.policy.Order != nil || len(p.nodes) > 1<<nodeBits || len(p.zones) > 1<<zoneBits {
		for i := range p.nodes {
			if p.nodes[i].group >= 0 {
				order = append(order, int32(i))
			}
		}
		slices.SortFunc(order, p.compare)
		return order
	}
	rank := ranks(p.zones)
	places := reuse(&p.mem.places, p.sizes.selected)[:0]
	if p.before != nil && p.before.ordered != nil {
		for _, i := range p.before.ordered {
			places = append(places, p.place(&p.nodes[i], int(i), rank))
		}
	} else {
		for i := range p.nodes {
			if m := &p.nodes[i]; m.group >= 0 {
				places = append(places, p.place(m, i, rank))
			}
		}
	}
	slices.Sort(places)
	for _, place := range places {
		order = append(order, int32(place&(1<<nodeBits-1)))
	}
	return order
}

// place is a number by which nodes can be sorted as defaultOrder does it.
func (p *plan) place(m *member, i int, rank []int) uint64 {
	v := uint64(p.stageOf(m))
	for _, b := range []bool{m.retried, m.node.Own, !isBroken(m.node), !m.canary} {
		v = v<<1 | uint64(number(b))
	}
	v = v<<zoneBits | uint64(rank[m.zone])
	v = v<<groupBits | uint64(m.group)
	return v<<nodeBits | uint64(i)
}

// ranks are the places of the zones among themselves.
func ranks(zones []string) []int {
	sorted := slices.Sorted(slices.Values(zones))
	rank := make([]int, len(zones))
	for i, z := range zones {
		rank[i], _ = slices.BinarySearch(sorted, z)
	}
	return rank
}

func (p *plan) compare(i, j int32) int {
	a, b := &p.nodes[i], &p.nodes[j]
	if c := cmp.Or(cmp.Compare(p.stageOf(a), p.stageOf(b)), cmp.Compare(number(a.retried), number(b.retried))); c != 0 {
		return c
	}
	first := p.policy.Order
	if first == nil {
		first = defaultOrder
	}
	return cmp.Or(first(a.node, b.node), cmp.Compare(a.group, b.group), cmp.Compare(i, j))
}
