// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// A gate that denies while a stage soaks has nothing new remembered at each look: what is remembered is written. The stage soaks anew when it allows (R-RO-26).
func TestDenialDuringASoakIsWrittenOnce(t *testing.T) {
	f := newFleet(t, 3)
	f.p.Stages = []Stage{{Name: "canary", Size: size(1), Soak: time.Minute}, {Name: "all"}}
	for i := 0; i < 30 && f.runs("v2") == 0; i++ {
		f.pass()
	}
	f.s.Gates = []Verdict{{From: "operator", Answer: Deny, Message: "off"}}
	f.passes(3)
	was := f.s.Progress
	if f.passes(10); !reflect.DeepEqual(was, f.s.Progress) || f.last.Reason != "Gate" {
		t.Errorf("remembered is %+v, want %+v as before; the rollout waits for %s", f.s.Progress, was, f.last.Reason)
	}
	f.s.Gates[0].Answer = Allow
	f.passes(4)
	if len(f.begun) != 1 || f.last.Reason != "Soak" {
		t.Errorf("%v begun, the rollout waits for %s, want it to soak anew", f.begun, f.last.Reason)
	}
	f.passes(60, Completed)
}

// A node that falls back and does not recover keeps no other one from the revision, which the rest of the fleet runs: neither those that join later, nor the next
// stage (R-RO-28, R-RO-30).
func TestRelapseKeepsNobodyFromTheRevision(t *testing.T) {
	for name, stages := range map[string][]Stage{
		"completed": nil, "before the next stage": {{Name: "canary", Size: size(1), Approval: true}, {Name: "all"}},
	} {
		f := newFleet(t, 4)
		f.p.RetryAfter, f.p.Stages = time.Second, stages
		f.passes(100, Completed, AtGate)
		first := f.begun[0]
		f.fallBack(first)
		f.fails = func(node, _ string) protocol.Event {
			if node == first {
				return protocol.EventFellBack
			}
			return ""
		}
		f.passes(100)
		f.wantReason(f.last, first, ReasonGivenUp)
		f.add("node-999", nil)
		f.p.Verb = Verb{Request: "go", Do: Promote}
		f.passes(100)
		if n := f.node("node-999"); n.Runs.Name != "v2" || f.runs("v2") != 4 || f.last.Phase != Completed {
			t.Errorf("%s: %d nodes run v2, the one that has joined %q, the rollout is %s: %s", name, f.runs("v2"), n.Runs.Name, f.last.Phase, f.last.Message)
		}
	}
}

// A revision that has failed, and of which nothing is left to try, freezes the rollout: somebody has to say what comes next. So it is when the node that it has
// broken was given up, and when nodes fail that have joined after all stages were passed (R-RO-28).
func TestNothingLeftToTryFreezes(t *testing.T) {
	f := brokenBy2(t, 3)
	f.p.Target = revision("v2")
	f.silent["node-000"] = true
	f.passes(6 * 60 * 4)
	f.wantReason(f.last, "node-001", ReasonStranded)
	for i := range 200 {
		f.p.Verb = Verb{Request: fmt.Sprint("gone-", i), Do: Acknowledge, Node: "node-000"}
		if d := f.pass(); d.Progress.Refused == "" {
			break
		}
	}
	if f.passes(20, Frozen); len(f.begun) != 1 || !strings.Contains(f.last.Message, "were given up") {
		t.Errorf("begun %v: %s", f.begun, f.last.Message)
	}
	f.fails = nil
	f.p.Verb = Verb{Request: "go-on", Do: Accept}
	if f.passes(100); f.runs("v2") != 3 {
		t.Errorf("%d nodes run v2 after that was accepted, want 3: %s", f.runs("v2"), f.last.Message)
	}
}

func TestJoinersThatFailFreeze(t *testing.T) {
	f := newFleet(t, 3)
	f.p.RetryAfter = time.Second
	f.passes(100, Completed)
	f.fails = func(node, _ string) protocol.Event {
		if strings.HasPrefix(node, "new") {
			return protocol.EventFellBack
		}
		return ""
	}
	f.add("new-0", nil)
	if f.passes(100); f.last.Phase != Completed {
		t.Errorf("%s after the first one has failed, want it completed: nobody waits", f.last.Phase)
	}
	f.add("new-1", nil)
	f.passes(100, Frozen)
	if f.node("new-1").Shadow.Report.Attempt != 0 {
		t.Errorf("the next one got the revision as well")
	}
}

// Outcomes of nodes that are gone are forgotten before all stages were passed, too: what keeps the last one may last. Failures stay (R-RO-30).
func TestChurnBeforeTheLastStageLeavesNoOutcomes(t *testing.T) {
	f := newFleet(t, 8)
	f.p.Stages = []Stage{{Name: "all", Approval: true}}
	f.passes(100, AtGate)
	most := 0
	for i := range 300 {
		f.exchange(i)
		f.passes(8)
		most = max(most, len(f.s.Progress.Outcomes))
	}
	if most > 8+100 || most < 100 || f.last.Phase == Completed {
		t.Errorf("%d outcomes at most, of 8 nodes at a time; the rollout is %s", most, f.last.Phase)
	}
}

// What a plan costs when a whole fleet has fallen back grows with the fleet, not with its square.
func TestCostOfAFleetThatFallsBack(t *testing.T) {
	garbage := func(nodes int) uint64 {
		f := newFleet(t, nodes)
		f.p.Caps = []Cap{{Scope: Total, Max: number(nodes)}}
		f.passes(100, Completed)
		for i := range f.s.Nodes {
			f.fallBack(f.s.Nodes[i].Name)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d := f.plan()
		runtime.ReadMemStats(&after)
		if n := len(d.Progress.Outcomes); n != nodes || d.Progress.Outcomes[n-1].Result != FellBack {
			t.Fatalf("%d outcomes of %d nodes", n, nodes)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if one, four := garbage(500), garbage(2000); four > 6*one {
		t.Errorf("%d bytes for 500 nodes, %d for 2000: more than six times as much", one, four)
	}
}

// A zone that loses its last node while the rollout goes on stops nothing: neither that, nor the way back (R-RO-25).
func TestZoneThatEmptiesHoldsUpNothing(t *testing.T) {
	f := newFleet(t, 4)
	zoneThatIs(f)
	f.p.Caps[1].Max = number(1)
	for i := 0; i < 30 && len(f.begun) == 0; i++ {
		f.pass()
	}
	delete(f.node("node-001").Labels, zone)
	f.passes(100, Completed)
	f.p.Target = revision("v3")
	f.passes(100, Completed)
	if f.runs("v3") != 4 {
		t.Errorf("%d nodes run v3: %s", f.runs("v3"), f.last.Message)
	}
}
