// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/belayproject/belay/rollout/protocol"
)

// missing stands for the version of a shadow that does not exist.
const missing = 0xFFFF

// A state is one moment: of every object its live version, and the set of all versions that somebody may still read. Versions are numbers of
// a table, so that a state is small and equal ones are equal bytes.
type state struct {
	ledger  uint16
	ledgers []uint16 // all versions that there were, sorted
	nodes   []nodeState
	acked   bool   // an abort is acknowledged, and nobody has resumed since
	lost    uint16 // how many shadows were deleted
}

type nodeState struct {
	shadow  uint16
	shadows []uint16 // all versions that there were
	disk    uint16   // the agent's own report
	down    bool     // the agent has committed, and the node is not at rest again
	last    uint16   // the last attempt that was committed
	fresh   []uint16 // the versions of the ledger since the shadow is missing
}

// A walk is one exploration under way.
type walk struct {
	o       Options
	ledgers table[protocol.Ledger]
	shadows table[protocol.Shadow]
	reports table[protocol.Report]
	steps   map[step]uint32 // results of step functions, by arguments
	caps    []protocol.Cap

	seen    map[string]int32
	keys    []string
	parents []int32
	labels  []uint16
	names   table[string]
	edges   []edge
	rest    []int32 // states in which nobody is disrupted
	at      int32
	from    state // the one at hand
	broken  string
	bad     []string
}

type edge struct{ from, to int32 }

// A table numbers values.
type table[T any] struct {
	all   []T
	index map[string]uint16
}

func (t *table[T]) number(v T) uint16 {
	key := fmt.Sprintf("%+v", v)
	if n, ok := t.index[key]; ok {
		return n
	}
	if t.index == nil {
		t.index = map[string]uint16{}
	}
	n := uint16(len(t.all)) // a world this small has fewer
	t.index[key], t.all = n, append(t.all, v)
	return n
}

func newWalk(o Options) *walk {
	return &walk{o: o, steps: map[step]uint32{}, seen: map[string]int32{}, caps: []protocol.Cap{{Max: o.Cap}}}
}

func (w *walk) first() state {
	var s state
	s.ledger = w.ledgers.number(protocol.Ledger{})
	s.ledgers = []uint16{s.ledger}
	for i := range w.o.Nodes {
		sh := protocol.NewShadow(nodeName(i), nodeName(i), protocol.Ledger{})
		sh.Report.Known = true
		id := w.shadows.number(sh)
		s.nodes = append(s.nodes, nodeState{shadow: id, shadows: []uint16{id}, disk: w.reports.number(sh.Report)})
	}
	return s
}

func nodeName(i int) string { return fmt.Sprintf("n%d", i) }

// visit adds a state that follows from the one at hand.
func (w *walk) visit(s state, from int32, label uint16) {
	key := w.encode(s)
	n, ok := w.seen[key]
	if !ok {
		n = int32(len(w.keys))
		w.seen[key] = n
		w.keys, w.parents, w.labels = append(w.keys, key), append(w.parents, from), append(w.labels, label)
		if w.quiet(s) {
			w.rest = append(w.rest, n)
		}
	}
	if from >= 0 {
		w.edges = append(w.edges, edge{from, n})
	}
}

// follow checks the rules on the next state and adds it.
func (w *walk) follow(s state, format string, args ...any) {
	label := w.names.number(fmt.Sprintf(format, args...))
	if w.broken != "" {
		return
	}
	w.visit(s, w.at, label)
	if why := cmp.Or(w.violation(s), w.regress(s)); why != "" {
		w.broken, w.bad = why, w.trace(w.at, w.names.all[label])
	}
}

// violation names the rule that does not hold in a state.
func (w *walk) violation(s state) string {
	l := w.ledgers.all[s.ledger]
	if len(l.Slots) > w.o.Cap {
		return fmt.Sprintf("I1: %d slots, the cap is %d", len(l.Slots), w.o.Cap)
	}
	down := 0
	for i, n := range s.nodes {
		if n.down {
			down++
		}
		if n.down && l.Slot(nodeName(i)) == nil {
			return fmt.Sprintf("I1: %s is disrupted and has no slot", nodeName(i))
		}
	}
	if down > w.o.Cap {
		return fmt.Sprintf("I1: %d nodes are disrupted, the cap is %d", down, w.o.Cap)
	}
	return ""
}

// regress names the rule that a move has broken though the next state itself is sound: numbers of attempts that went back, or an admission by a closed
// ledger. Worlds without a rule are about what follows from that.
func (w *walk) regress(s state) string {
	if w.o.Without != Nothing {
		return ""
	}
	was, is := w.ledgers.all[w.from.ledger], w.ledgers.all[s.ledger]
	switch {
	case is.Epoch < was.Epoch:
		return fmt.Sprintf("I3: the epoch goes from %d to %d", was.Epoch, is.Epoch)
	case is.Epoch > was.Epoch && was.ClosedFor("r") != nil:
		return fmt.Sprintf("I5: attempt %d is admitted by a closed ledger", is.Epoch)
	}
	for i := range s.nodes {
		if w.from.nodes[i].shadow == missing || s.nodes[i].shadow == missing {
			continue
		}
		a, b := w.shadows.all[w.from.nodes[i].shadow], w.shadows.all[s.nodes[i].shadow]
		o, n := a.Orders, b.Orders
		if n.Grant < o.Grant || n.Revoked < o.Revoked || n.Proceed < o.Proceed || n.Undo < o.Undo || b.Report.Attempt < a.Report.Attempt {
			return fmt.Sprintf("I3: a number of %s goes back: %+v, and then %+v", nodeName(i), a, b)
		}
	}
	return ""
}

func (w *walk) quiet(s state) bool {
	return len(w.ledgers.all[s.ledger].Slots) == 0 && !slices.ContainsFunc(s.nodes, func(n nodeState) bool { return n.down })
}

func (w *walk) trace(at int32, last string) []string {
	out := []string{last}
	for ; w.parents[at] >= 0; at = w.parents[at] {
		out = append(out, w.names.all[w.labels[at]])
	}
	slices.Reverse(out)
	return out
}

func (w *walk) result(complete bool) Result {
	r := Result{States: len(w.keys), Complete: complete, Violation: w.broken, Trace: w.bad}
	if complete {
		r.Stuck = w.stuck()
	}
	return r
}

// stuck counts the states that have no way to rest.
func (w *walk) stuck() int {
	starts := make([]int32, len(w.keys)+1)
	for _, e := range w.edges {
		starts[e.to+1]++
	}
	for i := range len(w.keys) {
		starts[i+1] += starts[i]
	}
	before, fill := make([]int32, len(w.edges)), slices.Clone(starts)
	for _, e := range w.edges {
		before[fill[e.to]] = e.from
		fill[e.to]++
	}
	reach, queue := make([]bool, len(w.keys)), slices.Clone(w.rest)
	for _, n := range queue {
		reach[n] = true
	}
	for len(queue) > 0 {
		n := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, p := range before[starts[n]:starts[n+1]] {
			if !reach[p] {
				reach[p] = true
				queue = append(queue, p)
			}
		}
	}
	stuck := 0
	for _, ok := range reach {
		if !ok {
			stuck++
		}
	}
	return stuck
}
