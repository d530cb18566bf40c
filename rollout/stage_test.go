// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// The next stage begins when the one before was passed: its nodes, its soak, its gates, its approval (R-RO-26).
func TestStagesArePassedInOrder(t *testing.T) {
	f := newFleet(t, 10)
	percent := intstr.FromString("50%")
	f.p.Caps = []Cap{{Scope: Total, Max: number(10)}}
	f.p.Stages = []Stage{
		{Name: "canary", Size: size(1), Soak: 10 * time.Minute}, {Name: "half", Size: &percent, Approval: true}, {Name: "all"},
	}
	begun := func() int { return len(f.begun) }
	d := f.passes(30)
	if begun() != 1 || d.Phase != AtGate || d.Reason != "Soak" || d.After == 0 {
		t.Fatalf("%d begun, phase %s, %s, again in %s", begun(), d.Phase, d.Reason, d.After)
	}
	f.s.Gates = []Verdict{{From: "alerts", Answer: Deny, Message: "2 alerts"}}
	f.now = f.now.Add(9 * time.Minute)
	f.pass()
	f.s.Gates[0].Answer = Unknown
	f.now = f.now.Add(9 * time.Minute)
	if d = f.pass(); begun() != 1 || d.Reason != "Gate" {
		t.Fatalf("%d begun, %s: a gate whose answer is not known does not allow", begun(), d.Reason)
	}
	f.s.Gates[0].Answer = Allow
	if d = f.pass(); begun() != 1 || d.Reason != "Soak" {
		t.Fatalf("%d begun, %s: what went wrong begins the soak anew", begun(), d.Reason)
	}
	f.now = f.now.Add(10 * time.Minute)
	if d = f.passes(30); begun() != 5 || d.Reason != ReasonApproval || d.Phase != AtGate {
		t.Fatalf("%d begun, want 5 of 10, those of the canary among them: %s", begun(), d.Message)
	}
	f.wantReason(d, "node-009", ReasonApproval)
	f.p.Verb = Verb{Request: "go", Do: Promote}
	f.passes(30, Completed)
}

// A node that cannot be touched is passed over for another one in a sized stage, and holds up a whole one.
func TestStagesAndNodesThatCannotBeTouched(t *testing.T) {
	f := newFleet(t, 4)
	f.p.Stages = []Stage{{Name: "canary", Size: size(1)}, {Name: "rest"}}
	f.node("node-000").Health = Verdict{Answer: Deny, Message: "sick"}
	f.passes(100)
	if want := []string{"node-001", "node-002", "node-003"}; !slices.Equal(f.begun, want) || f.last.Phase != Running {
		t.Errorf("begun %v, want %v; phase %s", f.begun, want, f.last.Phase)
	}
}

// Gates keep anything from being begun, and what they do not know does not allow.
func TestGatesHoldBackNodes(t *testing.T) {
	for _, answer := range []Answer{Deny, Unknown} {
		f := newFleet(t, 2)
		f.s.Gates = []Verdict{{From: "a", Answer: Allow}, {From: "b", Answer: answer, RetryAfter: time.Minute}}
		d := f.plan()
		f.wantReason(d, "node-000", "Gate")
		if d.After != time.Minute {
			t.Errorf("again in %s, want 1m", d.After)
		}
	}
}

// The default order is: canaries, zone by zone, by name, the node of the controller itself last; another order takes its place.
func TestOrder(t *testing.T) {
	nodes := func() *fleet {
		f := newFleet(t, 0)
		for i, z := range []string{"b", "a", "b", "a", "c"} {
			f.add(fmt.Sprintf("n%d", i), map[string]string{zone: z})
		}
		f.node("n1").Own = true
		f.node("n4").Labels["belay.dev/canary"] = ""
		return f
	}
	f := nodes()
	f.passes(100, Completed)
	if want := []string{"n4", "n3", "n0", "n2", "n1"}; !slices.Equal(f.begun, want) {
		t.Errorf("begun %v, want %v", f.begun, want)
	}
	g := nodes()
	g.p.Order = DefaultOrder
	g.passes(100, Completed)
	if !slices.Equal(f.begun, g.begun) {
		t.Errorf("without an order %v, with DefaultOrder %v", f.begun, g.begun)
	}
	h := nodes()
	h.p.Order = func(a, b *Node) int { return -DefaultOrder(a, b) }
	h.passes(100, Completed)
	if want := []string{"n1", "n0", "n2", "n3", "n4"}; !slices.Equal(h.begun, want) {
		t.Errorf("reversed: begun %v, want %v", h.begun, want)
	}
}

// R-RO-29: who goes back begins with the nodes that are broken, and then with those that were touched last; the node of the controller itself is the last.
func TestRollbackOrder(t *testing.T) {
	f := newFleet(t, 6)
	for i, attempt := range []protocol.Attempt{3, 9, 0, 7, 5, 8} {
		f.s.Nodes[i].Shadow.Report.Attempt = attempt
	}
	f.s.Ledger.Epoch = 9
	f.node("node-000").Shadow.Report.Phase = protocol.PhaseFailedBroken
	f.node("node-001").Own = true
	nodes := slices.Clone(f.s.Nodes)
	nodes[2].Shadow = nil
	slices.SortFunc(nodes, func(a, b Node) int { return RollbackOrder(&a, &b) })
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	if want := []string{"node-000", "node-005", "node-003", "node-004", "node-002", "node-001"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// A rollout that could break more nodes than its policy allows before it stops is not begun, and says so.
func TestTooManyCouldBreak(t *testing.T) {
	f := newFleet(t, 100)
	f.p.Caps = []Cap{{Scope: Total, Max: number(50)}}
	f.p.Stages = []Stage{{Name: "canary", Size: size(2)}, {Name: "rest", Caps: []Cap{{Scope: Total, Max: number(20)}}}}
	f.p.Detectors, f.p.MaxBroken = nil, size(10)
	d := f.pass()
	f.wantReason(d, "node-000", ReasonBound)
	if d.Phase != Pending || d.Reason != ReasonBound {
		t.Errorf("phase %s, %s", d.Phase, d.Reason)
	}
	f.p.Stages[1].Caps[0].Max = number(5)
	if d = f.pass(); len(doing(d, protocol.EventAdmit)) != 2 || d.Phase != Running {
		t.Errorf("admitted %v, phase %s: %s", doing(d, protocol.EventAdmit), d.Phase, d.Message)
	}
}

func TestRevisionHasToAge(t *testing.T) {
	f := newFleet(t, 1)
	f.p.Target.Created, f.p.Target.MinAge = f.now.Add(-time.Hour), 3*time.Hour
	d := f.plan()
	f.wantReason(d, "node-000", "TooYoung")
	if d.After != 2*time.Hour {
		t.Errorf("again in %s, want 2h", d.After)
	}
	f.now = f.now.Add(2 * time.Hour)
	f.passes(20, Completed)
}

// Nothing is begun outside the windows, and what was not committed is taken back; what was committed ends (R-RO-15).
func TestWindowsHoldBackNodes(t *testing.T) {
	f := newFleet(t, 30)
	f.p.Windows, f.p.Cycle = []Window{{Open: 12 * time.Hour, Close: 12*time.Hour + 10*time.Minute}}, 5*time.Minute
	d := f.pass()
	if len(doing(d, protocol.EventAdmit)) != 1 {
		t.Fatalf("nothing admitted: %v", d.Waiting)
	}
	f.pass()
	f.now = start().Add(5*time.Minute + time.Second)
	f.passes(20)
	f.wantReason(f.last, "node-029", "DoesNotFitWindow")
	if f.last.Counts.InFlight != 0 || f.runs("v2") != 1 {
		t.Errorf("counts %+v: what was begun ends", f.last.Counts)
	}
	f.now = start().Add(11 * time.Minute)
	d = f.pass()
	f.wantReason(d, "node-029", "WindowClosed")
	if want := start().Add(day).Sub(start().Add(11 * time.Minute)); d.After != want {
		t.Errorf("again in %s, want %s", d.After, want)
	}
	f = newFleet(t, 1)
	f.p.CommitWithin = time.Hour
	f.p.Windows, f.p.Cycle = []Window{{Open: 12 * time.Hour, Close: 12*time.Hour + 10*time.Minute}}, 5*time.Minute
	f.plan()
	f.now = start().Add(10 * time.Minute)
	if d = f.pass(); len(doing(d, protocol.EventRevoke)) != 1 {
		t.Errorf("%+v: what is not committed when the window closes is taken back", d.Nodes)
	}
}

const day = 24 * time.Hour
