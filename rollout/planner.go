// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import "time"

// A Planner is [Plan] for who plans again and again: it decides and explains the same, and works in memory of the call before instead of new one. It
// remembers the order of the nodes' names, so that the same nodes need not be sorted again, and nothing else; what it has returned stays as it is. The zero
// Planner is ready. It is not for concurrent use.
type Planner struct{ mem scratch }

// Plan is [Plan].
func (pl *Planner) Plan(s Snapshot, policy Policy, now time.Time) (Decisions, error) {
	if err := policy.Validate(); err != nil {
		return Decisions{}, err
	}
	defer pl.mem.forget()
	p := newPlan(&s, &policy, now, &pl.mem)
	if err := p.run(); err != nil {
		return Decisions{}, err
	}
	return p.decisions(), nil
}

// A scratch is the memory that a plan works in. Nothing of it may be in the decisions.
type scratch struct {
	names   names
	nodes   []member
	flights []flight
	byUID   map[string]int32
	places  []uint64
	ordered []int32
	begun   []bool
	uids    []string
	ends    []int32
	text    []byte
	sets    map[setOf]*keySet
	spare   []*keySet
	keyed   map[setOf][]string
	starts  map[setOf]int
}

// names are the places of names among themselves. They are learned from the second call on: who calls once has nothing of it.
type names struct {
	at     map[string]int32
	called bool
}

// place puts nodes where they belong if all of them, and no others, are known.
func (n *names) place(members []member, nodes []Node) bool {
	if len(n.at) != len(nodes) {
		return false
	}
	for i := range nodes {
		at, known := n.at[nodes[i].Name]
		if !known || members[at].node != nil { // a name that comes twice
			clear(members)
			return false
		}
		members[at] = member{node: &nodes[i], flight: -1}
	}
	return true
}

// learn remembers names that are sorted. Names that come twice are sorted by UID, too, and are not remembered.
func (n *names) learn(members []member) {
	if !n.called {
		n.called = true
		return
	}
	reuseMap(&n.at, len(members))
	for i := range members {
		n.at[members[i].node.Name] = int32(i)
	}
	if len(n.at) != len(members) {
		clear(n.at)
	}
}

// forget lets go of what the memory points to.
func (m *scratch) forget() {
	clear(m.nodes)
	clear(m.flights)
	clear(m.byUID)
	clear(m.uids)
	for _, s := range m.sets {
		clear(s.caps)
		clear(s.uses)
		*s = keySet{caps: s.caps[:0], uses: s.uses[:0]}
		m.spare = append(m.spare, s)
	}
	clear(m.sets)
	clear(m.keyed)
}

// keySet is an empty one.
func (m *scratch) keySet() *keySet {
	n := len(m.spare)
	if n == 0 {
		return &keySet{}
	}
	s := m.spare[n-1]
	m.spare = m.spare[:n-1]
	return s
}

// reuse makes a slice of so many zero elements, of the old memory if that is enough.
func reuse[T any](old *[]T, n int) []T {
	if cap(*old) < n {
		*old = make([]T, n)
		return *old
	}
	*old = (*old)[:n]
	clear(*old)
	return *old
}

// reuseMap makes an empty map for about so many elements.
func reuseMap[K comparable, V any](old *map[K]V, n int) map[K]V {
	if *old == nil {
		*old = make(map[K]V, n)
	}
	clear(*old)
	return *old
}
