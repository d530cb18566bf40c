// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// A grouper finds the groups of nodes that come in the order of their names.
type grouper struct {
	groups []Group
	listed []listing
	next   int
	found  int // how many of the listed nodes have come
	// labels are the groups whose selectors want one of some values of a label, rest those of the other selectors.
	labels []labelGroups
	rest   []int16
}

// A labelGroups is which groups may want a node with a value of a label. Each list is in the order of the groups.
type labelGroups struct {
	key    string
	values map[string][]int16
}

func (p *plan) grouper() *grouper {
	g := &grouper{groups: p.policy.Groups, listed: listings(p.policy.Groups)}
	for i := range g.groups {
		if s := g.groups[i].Selector; s != nil {
			g.index(int16(i), s)
		}
	}
	return g
}

// index notes a group by the first label of which its selector wants certain values. Whether a node matches is asked of the selector in the end; with this it is not
// asked of those that can't match.
func (g *grouper) index(group int16, s labels.Selector) {
	wants, selectable := s.Requirements()
	i := slices.IndexFunc(wants, func(r labels.Requirement) bool {
		return r.Operator() == selection.In || r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals
	})
	if !selectable || i < 0 {
		g.rest = append(g.rest, group)
		return
	}
	values := g.valuesOf(wants[i].Key())
	for _, value := range wants[i].ValuesUnsorted() {
		values[value] = append(values[value], group)
	}
}

func (g *grouper) valuesOf(key string) map[string][]int16 {
	for i := range g.labels {
		if g.labels[i].key == key {
			return g.labels[i].values
		}
	}
	values := map[string][]int16{}
	g.labels = append(g.labels, labelGroups{key, values})
	return values
}

// group is the first group that the node belongs to, -1 for none.
func (g *grouper) group(n *Node) int16 {
	for g.next < len(g.listed) && g.listed[g.next].name < n.Name {
		g.next++
	}
	none := int16(len(g.groups))
	first := none
	if g.next < len(g.listed) && g.listed[g.next].name == n.Name {
		first = g.listed[g.next].group
		g.found++
	}
	first = g.match(g.rest, first, n.Labels)
	for i := range g.labels {
		if value, has := n.Labels[g.labels[i].key]; has {
			first = g.match(g.labels[i].values[value], first, n.Labels)
		}
	}
	if first == none {
		return -1
	}
	return first
}

// match is the first of some groups that comes before another one and selects the labels, or that other one.
func (g *grouper) match(groups []int16, before int16, of labels.Set) int16 {
	for _, i := range groups {
		if i >= before {
			return before
		}
		if g.groups[i].Selector.Matches(of) {
			return i
		}
	}
	return before
}
