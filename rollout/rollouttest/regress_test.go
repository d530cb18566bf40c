// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"strings"
	"testing"

	"github.com/belayproject/belay/rollout/protocol"
)

// The walk notices numbers that go back, an admission by a closed ledger, a slot that is taken without a fact, and a change without the word to proceed.
func TestRegress(t *testing.T) {
	slots := func(k protocol.Attempt) protocol.Ledger {
		return protocol.Ledger{Epoch: 3, Slots: []protocol.Slot{{Node: "n0", UID: "n0", Attempt: k}}}
	}
	committed := protocol.Report{Attempt: 1, Phase: protocol.PhaseCommitted, Known: true}
	applying := protocol.Report{Attempt: 1, Phase: protocol.PhaseApplying, Known: true}
	for _, c := range []struct {
		name        string
		was, is     protocol.Ledger
		order, then protocol.Orders
		said, says  protocol.Report
		want        string
	}{
		{name: "nothing", want: ""},
		{name: "an admission", is: protocol.Ledger{Epoch: 1}, order: protocol.Orders{Grant: 1}, then: protocol.Orders{Grant: 2, Revoked: 1}, want: ""},
		{name: "the epoch", was: protocol.Ledger{Epoch: 2}, is: protocol.Ledger{Epoch: 1}, want: "I3: the epoch"},
		{name: "the attempt of a slot", was: slots(2), is: slots(1), want: "I3: the slot of n0"},
		{name: "a closed ledger", was: protocol.Ledger{}.Close(protocol.Closure{Request: "r"}), is: protocol.Ledger{Epoch: 1}, want: "I5"},
		{name: "a closed rollout", was: protocol.Ledger{}.Close(protocol.Closure{Scope: "r", Request: "r"}), is: protocol.Ledger{Epoch: 1}, want: "I5"},
		{name: "a grant", order: protocol.Orders{Grant: 2}, then: protocol.Orders{Grant: 1}, want: "I3: a number of n0"},
		{name: "a revocation", order: protocol.Orders{Revoked: 2}, then: protocol.Orders{Revoked: 1}, want: "I3: a number of n0"},
		{name: "a go", order: protocol.Orders{Proceed: 2}, then: protocol.Orders{Proceed: 1}, want: "I3: a number of n0"},
		{name: "an undo", order: protocol.Orders{Undo: 2}, then: protocol.Orders{Undo: 1}, want: "I3: a number of n0"},
		{name: "a report", said: applying, says: protocol.Report{Known: true}, want: "I3: a number of n0"},
		{name: "a slot that is open", was: slots(1), is: protocol.Ledger{Epoch: 3}, then: protocol.Orders{Grant: 1}, want: "I11"},
		{name: "a slot that is revoked", was: slots(1), is: protocol.Ledger{Epoch: 3}, then: protocol.Orders{Grant: 1, Revoked: 1}, want: ""},
		{name: "a change", order: protocol.Orders{Proceed: 1}, then: protocol.Orders{Proceed: 1}, said: committed, says: applying, want: ""},
		{name: "a change that nobody asked for", said: committed, says: applying, want: "I4"},
		{name: "a change that is undone", order: protocol.Orders{Undo: 1}, then: protocol.Orders{Undo: 1}, said: committed, says: applying, want: "I4"},
	} {
		w := newWalk(Options{Nodes: 1, Cap: 1, Attempts: 1, Phases: true})
		w.from = w.first()
		w.from.ledger = w.ledgers.number(c.was)
		w.from = w.from.put(0, w.wrote(w.from.nodes[0], w.shadows.number(protocol.Shadow{Orders: c.order, Report: c.said})))
		s := w.from
		s.ledger = w.ledgers.number(c.is)
		s = s.put(0, w.wrote(s.nodes[0], w.shadows.number(protocol.Shadow{Orders: c.then, Report: c.says})))
		if got := w.regress(s); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s goes back: got %q, want %q", c.name, got, c.want)
		}
	}
}

// The walk notices a new shadow that leaves an old grant open.
func TestRegressOfANewShadow(t *testing.T) {
	for mark, want := range map[protocol.Attempt]string{1: "I3: n0 was granted attempt 2", 2: "", 3: ""} {
		w := newWalk(Options{Nodes: 1, Cap: 1, Attempts: 1})
		lost := w.wrote(w.first().nodes[0], w.shadows.number(protocol.Shadow{Orders: protocol.Orders{Grant: 2}}))
		lost.shadow = missing
		w.from = w.first().put(0, lost)
		s := w.from.put(0, w.wrote(lost, w.shadows.number(protocol.Shadow{Orders: protocol.Orders{Revoked: mark}})))
		if got := w.regress(s); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("a new shadow with the mark %d: got %q, want %q", mark, got, want)
		}
	}
}

// The walk notices states that are not sound.
func TestViolation(t *testing.T) {
	slots := func(nodes ...string) (l protocol.Ledger) {
		for i, n := range nodes {
			l.Slots = append(l.Slots, protocol.Slot{Node: n, UID: n, Attempt: protocol.Attempt(i + 1), Keys: []string{"zone/a"}})
		}
		return l
	}
	applying := protocol.Report{Attempt: 1, Phase: protocol.PhaseApplying, Known: true}
	for _, c := range []struct {
		name   string
		ledger protocol.Ledger
		disk   protocol.Report
		down   bool
		last   [2]uint16
		want   string
	}{
		{name: "nothing", want: ""},
		{name: "a node that has committed", ledger: slots("n0"), disk: applying, down: true, last: [2]uint16{1, 2}, want: ""},
		{name: "more slots than the cap", ledger: slots("n0", "n1", "n2"), want: "I1: 3 slots, "},
		{name: "more slots than that of the zone", ledger: slots("n0", "n1"), want: "I1: 2 slots count for zone/a"},
		{name: "a node without a slot", ledger: slots("n1"), down: true, want: "I1: n0 is disrupted"},
		{name: "a node that has not committed", ledger: slots("n0"), disk: applying, want: "I4: n0 is Applying"},
		{name: "an attempt of two", ledger: slots("n0"), last: [2]uint16{1, 1}, want: "I3: n0 and n1"},
	} {
		w := newWalk(Options{Nodes: 2, Cap: 2, PerZone: 1, Attempts: 1})
		s := w.first()
		s.ledger = w.ledgers.number(c.ledger)
		s.nodes[0].disk, s.nodes[0].down, s.nodes[0].last, s.nodes[1].last = w.reports.number(c.disk), c.down, c.last[0], c.last[1]
		if got := w.violation(s); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// The walk notices a step that has written to its argument.
func TestKept(t *testing.T) {
	w := newWalk(Options{Nodes: 1, Cap: 1, Attempts: 1})
	n := w.ledgers.number(protocol.Ledger{Slots: []protocol.Slot{{Node: "n0", UID: "n0", Attempt: 1}}})
	if got := w.kept(); got != "" {
		t.Errorf("nothing was changed: got %q", got)
	}
	w.ledgers.all[n].Slots[0].Attempt = 2
	if got := w.result(true); !strings.HasPrefix(got.Violation, "I10") || got.Complete {
		t.Errorf("a ledger was changed in its place: got %+v, want I10", got)
	}
}

// The walk notices states from which there is no way on: of three, from the first to the second and back, and to a third with an attempt left, of which
// only the second is at rest and only in the first a node may commit.
func TestHopeless(t *testing.T) {
	w := newWalk(Options{Nodes: 1, Cap: 1, Attempts: 1})
	w.keys, w.marks = make([]string, 3), []mark{1 | markLeft, markRest | markLeft, markLeft}
	w.edges = []edge{{0, 1}, {1, 0}, {0, 2}}
	if stuck, starved := w.hopeless(); stuck != 1 || starved != 1 {
		t.Errorf("got %d stuck and %d starved, want the third state alone", stuck, starved)
	}
	w.marks[2] = 0 // no attempt is left
	if stuck, starved := w.hopeless(); stuck != 1 || starved != 0 {
		t.Errorf("got %d stuck and %d starved, want the third state stuck, and nobody starved without an attempt", stuck, starved)
	}
}

// A world for which the numbers of the walk are too small is an error, and nothing that is found in it counts.
func TestTooLarge(t *testing.T) {
	w := newWalk(Options{Nodes: 1, Cap: 1, Attempts: 1})
	for k := range protocol.Attempt(missing) {
		w.reports.number(protocol.Report{Attempt: k})
	}
	if err := w.err(); err != nil {
		t.Errorf("%d reports have a number each: got error %v", missing, err)
	}
	w.reports.number(protocol.Report{Attempt: missing})
	if err := w.err(); err == nil || !strings.Contains(err.Error(), "more than 65535 different reports") {
		t.Errorf("one report more than there are numbers: got error %v", err)
	}
	w = newWalk(Options{Nodes: 1, Cap: 1, Attempts: 1})
	s := w.first()
	s.ledgers = make([]uint16, mostVersions)
	if w.encode(nil, s); w.err() != nil {
		t.Errorf("%d versions have a place: got error %v", mostVersions, w.err())
	}
	s.ledgers = make([]uint16, mostVersions+1)
	if w.encode(nil, s); w.err() == nil || !strings.Contains(w.err().Error(), "had 256 versions") {
		t.Errorf("one version more than has a place: got error %v", w.err())
	}
}
