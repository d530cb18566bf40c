// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
)

// The gates of a stage are asked when it is over: the nodes of the stage are begun whatever they say, and those of the next one are not before all
// of them allow it; those of another stage have no say (R-RO-26).
func TestGatesOfAStage(t *testing.T) {
	f := newFleet(t, 5)
	f.p.Stages = []Stage{{Name: "canary", Size: size(1), Soak: time.Minute, Gates: []string{"smoke", "person"}}, {Name: "all", Gates: []string{"last"}}}
	verdict := func(from string, a Answer) Verdict {
		return Verdict{From: from, Answer: a, ForStages: true, Message: "it says " + string(a)}
	}
	wantHeld := func(gates []Verdict, says string) {
		t.Helper()
		f.s.Gates = gates
		d := f.passes(30)
		if len(f.begun) != 1 || d.Phase != AtGate || d.Reason != "Gate" || !strings.Contains(d.Message, says) {
			t.Fatalf("%v begun, %s, %s: %s, want the canary alone, and %q", f.begun, d.Phase, d.Reason, d.Message, says)
		}
	}
	last, smoke := verdict("last", Deny), verdict("smoke", Allow)
	wantHeld([]Verdict{last, verdict("smoke", Deny), verdict("person", Allow)}, "smoke: it says Deny")
	wantHeld([]Verdict{last, smoke, verdict("person", Unknown)}, "person: it says")
	wantHeld([]Verdict{last, smoke}, `nothing was heard of gate "person", which stage "canary" names`)
	f.s.Gates = []Verdict{last, smoke, verdict("person", Allow)}
	f.passes(40)
	if len(f.begun) != 5 || f.last.Phase != AtGate {
		t.Fatalf("%v begun, %s, want all, and the gate of the last stage", f.begun, f.last.Phase)
	}
	f.s.Gates[0].Answer = Allow
	f.passes(10, Completed)
}

// Only who makes a gate says that it is for stages: a gate of the whole fleet that a stage names holds back everything as before. Promoting a stage skips
// its gates (R-RO-26).
func TestGateOfTheFleetStaysOne(t *testing.T) {
	f := newFleet(t, 3)
	f.p.Stages = []Stage{{Name: "canary", Size: size(1), Gates: []string{"operator"}}, {Name: "all"}}
	f.s.Gates = []Verdict{{From: "operator", Answer: Deny}}
	if f.passes(5); len(f.begun) != 0 {
		t.Fatalf("%v begun, want none", f.begun)
	}
	f.s.Gates[0].ForStages = true
	if f.passes(20); len(f.begun) != 1 || f.last.Phase != AtGate {
		t.Fatalf("%v begun, %s, want one, and the gate", f.begun, f.last.Phase)
	}
	f.p.Verb = Verb{Request: "go", Do: Promote}
	f.passes(30, Completed)
}
