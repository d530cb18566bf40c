// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/belayproject/belay/rollout/protocol"
)

// Labels of nodes.
const (
	zoneLabel         = "topology.kubernetes.io/zone"
	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
)

func compareNames(a, b member) int {
	if c := strings.Compare(a.node.Name, b.node.Name); c != 0 {
		return c
	}
	return strings.Compare(a.node.UID, b.node.UID)
}

// An aim is what the nodes of a group are brought to.
type aim struct{ target, completed *Revision }

func (p *plan) aim() {
	var completed *Revision
	if p.policy.Completed.Name != "" {
		completed = &p.policy.Completed
	}
	p.targets = make([]aim, len(p.policy.Groups))
	for i := range p.policy.Groups {
		g := &p.policy.Groups[i]
		p.targets[i] = aim{&p.policy.Target, completed}
		if g.Target != nil {
			p.targets[i] = aim{g.Target, g.Completed}
		}
	}
}

// refs are the revisions that the policy is about: its own, and those of the groups that have one.
func (p *plan) refs() []protocol.Revision {
	refs := []protocol.Revision{p.policy.Target.Ref()}
	for _, g := range p.policy.Groups {
		if g.Target != nil {
			refs = append(refs, g.Target.Ref())
		}
	}
	return refs
}

// Ref names the revision, as orders and reports do.
func (r *Revision) Ref() protocol.Revision { return protocol.Revision{Name: r.Name, Digest: r.Digest} }

// class is the class, with what an empty one means.
func (r *Revision) class() Class {
	if r.Class == "" {
		return Intrusive
	}
	return r.Class
}

// A listing is a node that a group names.
type listing struct {
	name  string
	group int16
}

// listings are all named nodes, by name.
func listings(groups []Group) []listing {
	n := 0
	for _, g := range groups {
		n += len(g.Nodes)
	}
	all := make([]listing, 0, n)
	for i, g := range groups {
		for _, name := range g.Nodes {
			all = append(all, listing{name, int16(i)})
		}
	}
	slices.SortFunc(all, func(a, b listing) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return cmp.Compare(a.group, b.group)
	})
	return all
}

func (p *plan) isSerial(n *Node) bool {
	if p.policy.Serial == nil {
		_, ok := n.Labels[controlPlaneLabel]
		return ok
	}
	return p.policy.Serial.Matches(labels.Set(n.Labels))
}

func (p *plan) isCritical(n *Node) bool {
	return p.policy.Critical != nil && p.policy.Critical.Matches(labels.Set(n.Labels))
}

// sizes are how many nodes there are of each kind.
type sizes struct {
	domain, selected int
	groups, zones    []int
	// classes are of the selected nodes, by the target of their group.
	intrusive, nonIntrusive int
	serial                  int
}

func (p *plan) count() {
	s := sizes{domain: len(p.nodes), groups: make([]int, len(p.policy.Groups)), zones: make([]int, len(p.zones))}
	for i := range p.nodes {
		m := &p.nodes[i]
		s.zones[m.zone]++
		if m.serial {
			s.serial++
		}
		if m.group < 0 {
			continue
		}
		s.selected++
		s.groups[m.group]++
		if p.targets[m.group].target.class() == Intrusive {
			s.intrusive++
		} else {
			s.nonIntrusive++
		}
	}
	p.sizes = s
}
