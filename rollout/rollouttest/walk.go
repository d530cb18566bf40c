// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/belayproject/belay/rollout/protocol"
)

// missing stands for the version of a shadow that does not exist. Every table ends below it.
const missing = 0xFFFF

// rolloutUID is the one rollout that the worlds have.
const rolloutUID = "r"

// A state is one moment: of every object its live version, and what may be done by all versions that somebody may still read (see reads.go). Versions
// are numbers of a table, so that a state is small and equal ones are equal bytes.
type state struct {
	ledger  uint16
	ledgers []uint16 // all versions that there were, sorted; empty where nothing is written by them
	nodes   []nodeState
	acked   bool   // an abort or a pause is acknowledged, and the ledger was not open since
	lost    uint16 // how many shadows were deleted
}

type nodeState struct {
	shadow  uint16
	shadows []uint16 // all versions that there were; empty where nothing is written by them
	shown   []uint16 // what is proved by all versions that there were
	slots   []uint16 // all that the node had
	disk    uint16   // the agent's own report
	down    bool     // the agent has committed, and the node is not at rest again
	last    uint16   // the last attempt that was committed
	since   []uint16 // all versions of the ledger since there is no shadow; empty but where states have all versions
	fresh   []uint16 // the shadows that may be made by versions of the ledger since there is none
}

// A walk is one exploration under way.
type walk struct {
	o        Options
	ledgers  table[string, protocol.Ledger]
	shadows  table[protocol.Shadow, protocol.Shadow]
	reports  table[protocol.Report, protocol.Report]
	slots    table[string, protocol.Slot]
	proofs   table[proof, proof]
	proven   [][]uint16      // by each version of a shadow
	examples []uint16        // the first shadow that each proof was seen in
	whole    bool            // states have all versions
	steps    map[step]uint32 // results of step functions, by arguments
	caps     []protocol.Cap
	closers  []closer

	seen    map[string]int32
	keys    []string
	parents []int32
	labels  []uint16
	marks   []mark
	names   table[string, string]
	edges   []edge
	at      int32
	from    state // the one at hand
	buffer  []byte
	broken  string
	bad     []string
	full    error // a set that is too large
}

type edge struct{ from, to int32 }

// A table numbers values; those with the same key are the same.
type table[K comparable, T any] struct {
	what  string
	key   func(T) K
	all   []T
	index map[K]uint16
	full  error
}

func newTable[K comparable, T any](what string, key func(T) K) table[K, T] {
	return table[K, T]{what: what, key: key, index: map[K]uint16{}}
}

// number is that of a value. Once the table is full every new one has the number 0, and the walk has to end.
func (t *table[K, T]) number(v T) uint16 {
	key := t.key(v)
	if n, ok := t.index[key]; ok {
		return n
	}
	if len(t.all) >= missing {
		t.full = fmt.Errorf("the world has more than %d different %s, want a smaller one", missing, t.what)
		return 0
	}
	n := uint16(len(t.all))
	t.index[key], t.all = n, append(t.all, v)
	return n
}

func itself[T any](v T) T { return v }

func textOf(l protocol.Ledger) string { return fmt.Sprintf("%+v", l) }

func newWalk(o Options) *walk {
	w := &walk{
		o: o, steps: map[step]uint32{}, seen: map[string]int32{}, caps: []protocol.Cap{{Max: o.Cap}}, closers: o.closers(),
		ledgers: newTable("versions of the ledger", textOf), shadows: newTable("versions of shadows", itself[protocol.Shadow]),
		slots: newTable("slots", func(s protocol.Slot) string { return fmt.Sprintf("%+v", s) }), proofs: newTable("proofs", itself[proof]),
		reports: newTable("reports", itself[protocol.Report]), names: newTable("moves", itself[string]),
	}
	if o.PerZone > 0 {
		w.caps = append(w.caps, protocol.Cap{Key: zoneOf(0), Max: o.PerZone}, protocol.Cap{Key: zoneOf(1), Max: o.PerZone})
	}
	return w
}

// err says what there is too much of in this world, if there is.
func (w *walk) err() error {
	err := cmp.Or(w.full, w.ledgers.full, w.shadows.full, w.slots.full, w.proofs.full, w.reports.full, w.names.full)
	if err == nil && len(w.edges) > math.MaxInt32 {
		err = errors.New("the world has more than 2^31 moves, want a smaller one")
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("exploring %d states: %w", len(w.keys), err)
}

func (w *walk) first() state {
	var s state
	for i := range w.o.Nodes {
		sh := protocol.NewShadow(nodeName(i), nodeName(i), protocol.Ledger{})
		sh.Report.Known = true
		id := w.shadows.number(sh)
		s.nodes = append(s.nodes, w.wrote(nodeState{disk: w.reports.number(sh.Report)}, id))
	}
	return w.stored(s, w.ledgers.number(protocol.Ledger{}))
}

func nodeName(i int) string { return "n0n1n2n3n4n5n6n7"[2*i : 2*i+2] }

// zoneOf is the key of the zone that a node is in: there are two, by turns.
func zoneOf(i int) string { return "zone/" + string(rune('a'+i%2)) }

// visit adds a state that follows from another one, or from none, and reports whether it was new.
func (w *walk) visit(s state, from int32) (n int32, added bool) {
	w.buffer = w.encode(w.buffer[:0], s)
	n, ok := w.seen[string(w.buffer)]
	if !ok {
		key := string(w.buffer)
		n = int32(len(w.keys))
		w.seen[key] = n
		w.keys, w.parents, w.labels = append(w.keys, key), append(w.parents, from), append(w.labels, 0)
		w.marks = append(w.marks, w.markOf(s))
	}
	if from >= 0 {
		w.edges = append(w.edges, edge{from, n})
	}
	return n, !ok
}

// follow adds the next state, and checks the rules on it and on the way to it.
func (w *walk) follow(s state, format string, args ...any) {
	if w.broken != "" {
		return
	}
	n, added := w.visit(s, w.at)
	why := ""
	if added {
		w.labels[n] = w.names.number(fmt.Sprintf(format, args...))
		why = w.violation(s)
	}
	if why = cmp.Or(why, w.regress(s)); why != "" {
		w.breaks(why, fmt.Sprintf(format, args...))
	}
}

// breaks notes a rule that a move has broken, or would break.
func (w *walk) breaks(rule, move string) {
	if w.broken == "" {
		w.broken, w.bad = rule, w.trace(w.at, move)
	}
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
	if w.broken == "" {
		w.broken = w.kept()
	}
	r := Result{States: len(w.keys), Complete: complete && w.broken == "", Violation: w.broken, Trace: w.bad}
	if r.Complete {
		r.Stuck, r.Starved = w.hopeless()
	}
	return r
}
