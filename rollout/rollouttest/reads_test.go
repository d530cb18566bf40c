// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/raceshare"
)

// sameTables is a walk of the same world with the numbers of another one.
func sameTables(w *walk) *walk {
	n := newWalk(w.o)
	n.ledgers, n.shadows, n.reports, n.slots, n.proofs, n.proven, n.examples = w.ledgers, w.shadows, w.reports, w.slots, w.proofs, w.proven, w.examples
	return n
}

// A walk over states that have only what past versions allow finds what one finds over states that have all versions: each state of one is one
// of the other, each move of one is a move of the other, and so are the ways to rest and to commits.
func TestNothingIsLost(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"two of three", Options{Nodes: 3, Cap: 2, Attempts: 3}},
		{"one of each zone", Options{Nodes: 2, Cap: 2, PerZone: 1, Attempts: 3, Retry: true}},
		{"abort, retry and loss", Options{Nodes: 1, Cap: 1, Attempts: 2, Losses: 1, Retry: true, Abort: true}},
		{"a pause in an abort", Options{Nodes: 2, Cap: 1, Attempts: 1, Abort: true, Pause: true}},
		{"a hand", Options{Nodes: 2, Cap: 1, Attempts: 2, Losses: 1, Hand: true, Abort: true}},
		{"every phase", Options{Nodes: 1, Cap: 1, Attempts: 2, Phases: true, Losses: 1, Retry: true}},
		{"every phase, aborted", Options{Nodes: 1, Cap: 1, Attempts: 1, Phases: true, Losses: 2, Hand: true, Retry: true, Abort: true}},
		{"every phase of two", Options{Nodes: 2, Cap: 1, Attempts: 2, Phases: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if raceshare.Step(t) > 1 {
				c.o.Attempts, c.o.Losses = 1, min(1, c.o.Losses)
			}
			whole := newWalk(c.o)
			whole.whole = true
			all, err := whole.explore(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			reduced := sameTables(whole)
			few, err := reduced.explore(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d states with all versions are %d", all.States, few.States)
			if !all.Complete || !few.Complete || all.Stuck+all.Starved+few.Stuck+few.Starved > 0 || all.Violation+few.Violation != "" {
				t.Fatalf("got %+v with all versions and %+v without, want all states of both, and a way on from each", all, few)
			}
			alike(t, whole, reduced)
		})
	}
}

// alike compares two walks of the same world, state by state and move by move.
func alike(t *testing.T, whole, reduced *walk) {
	t.Helper()
	is := make([]int32, len(whole.keys)) // the state that each is one with
	reached := map[int32]bool{}
	for n, key := range whole.keys {
		s := whole.decode(key)
		s.ledgers = nil
		for i := range s.nodes {
			s.nodes[i].shadows, s.nodes[i].since = nil, nil
		}
		m, ok := reduced.seen[string(reduced.encode(nil, s))]
		if !ok {
			t.Fatalf("state %d has no counterpart: %+v", n, s)
		}
		if whole.marks[n] != reduced.marks[m] {
			t.Fatalf("state %d has marks %b, its counterpart %b", n, whole.marks[n], reduced.marks[m])
		}
		is[n], reached[m] = m, true
	}
	if len(reached) != len(reduced.keys) {
		t.Errorf("%d states of %d are counterparts: the others can't be reached", len(reached), len(reduced.keys))
	}
	// From each state the same ones are reached as from its counterpart.
	moves := func(w *walk, name func(int32) int32) [][]int32 {
		out := make([][]int32, len(w.keys))
		for _, e := range w.edges {
			out[e.from] = append(out[e.from], name(e.to))
		}
		for n := range out {
			slices.Sort(out[n])
			out[n] = slices.Compact(out[n])
		}
		return out
	}
	want := moves(reduced, func(n int32) int32 { return n })
	for n, got := range moves(whole, func(n int32) int32 { return is[n] }) {
		if !slices.Equal(got, want[is[n]]) {
			t.Fatalf("from state %d there are moves to %v, from its counterpart to %v", n, got, want[is[n]])
		}
	}
}

// Without each rule a promise is broken, in as few moves, whether states have all versions or not.
func TestNothingIsLostWithoutARule(t *testing.T) {
	for rule, o := range worlds() {
		whole := newWalk(o)
		whole.whole = true
		all, err := whole.explore(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		few, err := newWalk(o).explore(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if few.Violation != all.Violation || few.Violation == "" || !slices.Equal(few.Trace, all.Trace) {
			t.Errorf("without the %s: got %q by %q, want %q by %q, as with all versions", rule, few.Violation, few.Trace, all.Violation, all.Trace)
		}
	}
}

// The walk notices a version of a shadow that stands for others and is not what they are.
func TestMistaken(t *testing.T) {
	for name, spoil := range map[string]func(*walk){
		"nothing":          func(*walk) {},
		"another example":  func(w *walk) { w.examples[w.proofs.index[proof{nodeName(0), opRelease, 1}]] = 0 },
		"a missing proof":  func(w *walk) { w.proven[0] = nil },
		"a proof too many": func(w *walk) { w.proven[0] = with(w.proven[0], w.proofs.index[proof{nodeName(0), opRelease, 1}]) },
		"a missing answer": func(w *walk) {
			p := w.proofs.index[proof{nodeName(0), opAcknowledge, 1}]
			for v, all := range w.proven {
				w.proven[v] = slices.DeleteFunc(slices.Clone(all), func(n uint16) bool { return n == p })
			}
		},
	} {
		w := newWalk(Options{Nodes: 1, Cap: 1, Attempts: 2, Retry: true})
		if _, err := w.explore(t.Context()); err != nil {
			t.Fatal(err)
		}
		spoil(w)
		err := w.mistaken()
		if name == "nothing" && err != nil || name != "nothing" && (err == nil || !strings.Contains(err.Error(), "does not stand for another one")) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}
