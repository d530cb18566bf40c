// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
)

// A heldUp is a rollout of 6 nodes that take 10 minutes each, and 20 at worst, from noon on: what holds up whom, for how long, and how it ends.
type heldUp struct {
	name   string
	change func(f *fleet, a *Assumptions)
	ending Ending
	takes  time.Duration
	worst  time.Duration
	turns  int
	waits  string // reasons, nodes, for how long
	left   string
}

func heldUps() []heldUp {
	hour := time.Hour
	return []heldUp{
		{
			"one by one", func(*fleet, *Assumptions) {}, EndCompleted, hour, 2 * hour, 6, "Cap 5 50m0s", "",
		},
		{"three at a time", func(f *fleet, _ *Assumptions) { f.p.Caps = []Cap{{Scope: Total, Max: number(3)}} }, EndCompleted, hour / 3, 2 * hour / 3, 6, "Cap 3 10m0s", ""},
		{"a canary that soaks", func(f *fleet, _ *Assumptions) {
			f.p.Stages = []Stage{{Name: "canary", Size: size(1), Soak: hour}, {Name: "rest"}}
		}, EndCompleted, 2 * hour, 3 * hour, 6, "Soak 5 1h0m0s, Cap 4 40m0s, LaterStage 5 10m0s", ""},
		{"an approval that comes", func(f *fleet, a *Assumptions) {
			f.p.Stages, a.ApproveAfter = []Stage{{Name: "a", Size: size(3), Approval: true}, {Name: "b"}}, 5*hour
		}, EndCompleted, 6 * hour, 7 * hour, 6, "Approval 3 5h0m0s, Cap 5 40m0s, LaterStage 3 10m0s", ""},
		{"an approval that does not", func(f *fleet, _ *Assumptions) {
			f.p.Stages = []Stage{{Name: "a", Size: size(3), Approval: true}, {Name: "b"}}
		}, EndStalled, hour / 2, hour, 3, "Cap 5 20m0s, LaterStage 3 10m0s", "node-003 Approval, node-004 Approval, node-005 Approval"},
		{"a window", func(f *fleet, _ *Assumptions) {
			f.p.Windows = []Window{{Open: 12 * hour, Close: 13 * hour}}
		}, EndCompleted, 24*hour + hour/6, 25 * hour, 6, "DoesNotFitWindow 1 23h10m0s, Cap 5 50m0s", ""},
		{"a window in which nothing fits", func(f *fleet, a *Assumptions) {
			f.p.Windows, a.Within = []Window{{Open: 12 * hour, Close: 12*hour + 15*time.Minute}}, 72*hour
		}, "OutOfTime", 72 * hour, 72 * hour, 0, "DoesNotFitWindow 6 72h0m0s", "node-000 DoesNotFitWindow, node-001 DoesNotFitWindow, node-002 DoesNotFitWindow, node-003 DoesNotFitWindow, node-004 DoesNotFitWindow, node-005 DoesNotFitWindow"},
		{"few steps", func(_ *fleet, a *Assumptions) { a.Steps = 3 }, "OutOfSteps", hour / 3, 2 * hour / 3, 3, "Cap 5 20m0s", "node-003 Cap, node-004 Cap, node-005 Cap"},
		{"a gate", func(f *fleet, _ *Assumptions) {
			f.s.Gates = []Verdict{{From: "alerts", Answer: Deny, RetryAfter: time.Minute}}
		}, EndStalled, 0, 0, 0, "", "node-000 Gate, node-001 Gate, node-002 Gate, node-003 Gate, node-004 Gate, node-005 Gate"},
		{"nodes that cannot go", func(f *fleet, _ *Assumptions) {
			f.node("node-001").Shadow, f.node("node-004").Health = nil, Verdict{RetryAfter: time.Minute}
		}, EndStalled, 2 * hour / 3, 4 * hour / 3, 4, "NoAgent 1 40m0s, Unhealthy 1 40m0s, Cap 3 30m0s", "node-001 NoAgent, node-004 Unhealthy"},
		{"a drain that is blocked", func(f *fleet, _ *Assumptions) {
			f.node("node-001").Drain.Blocked = `budget "web"`
		}, EndStalled, hour / 6, hour / 3, 2, "Cap 5 1h10m0s, DrainBlocked 1 1h0m0s", "node-001 DrainBlocked, node-002 Cap, node-003 Cap, node-004 Cap, node-005 Cap"},
		{"a blocked drain that is forced", func(f *fleet, _ *Assumptions) {
			f.node("node-001").Drain.Blocked, f.p.StuckDrain = `budget "web"`, ForceDrain
		}, EndCompleted, 2 * hour, 3 * hour, 6, "Cap 5 1h50m0s, DrainBlocked 1 1h0m0s", ""},
		{"somebody has paused it", func(f *fleet, _ *Assumptions) {
			f.p.Verb = Verb{Request: "r", Do: Pause}
		}, EndStalled, 0, 0, 0, "", "node-000 Paused, node-001 Paused, node-002 Paused, node-003 Paused, node-004 Paused, node-005 Paused"},
	}
}

func TestSimulationSaysWhatHoldsUp(t *testing.T) {
	for _, c := range heldUps() {
		t.Run(c.name, c.want)
	}
}

func (c heldUp) want(t *testing.T) {
	f, a := newFleet(t, 6), Assumptions{Cycle: 10 * time.Minute, WorstCycle: 20 * time.Minute}
	c.change(f, &a)
	s, err := Simulate(f.s, f.p, f.now, a)
	if err != nil {
		t.Fatal(err)
	}
	e := s.Expected
	if takes := e.End.Sub(e.Begin); e.Ending != c.ending || takes != c.takes || s.Worst.End.Sub(e.Begin) != c.worst || len(e.Turns) != c.turns {
		t.Errorf("%s after %s, at worst %s, with %d turns; want %s, %s, %s, %d: %s", e.Ending, takes, s.Worst.End.Sub(e.Begin), len(e.Turns), c.ending, c.takes, c.worst, c.turns, e.Message)
	}
	var waits, left []string
	for _, w := range e.Waits {
		waits = append(waits, fmt.Sprintf("%s %d %s", w.Reason, w.Nodes, w.For))
	}
	for _, l := range e.Left {
		left = append(left, l.Node+" "+string(l.Why.Reason))
	}
	if got := strings.Join(waits, ", "); got != c.waits {
		t.Errorf("they wait for %s; want %s", got, c.waits)
	}
	if got := strings.Join(left, ", "); got != c.left {
		t.Errorf("left are %s; want %s", got, c.left)
	}
}

// A simulation from the middle says when what is under way ends, and which stages there are still to come.
func TestSimulationOfARolloutUnderWay(t *testing.T) {
	f := newFleet(t, 4)
	f.p.Stages = []Stage{{Name: "canary", Size: size(1), Soak: time.Hour}, {Name: "half", Size: size(2)}, {Name: "rest"}}
	f.passes(3)
	s, err := Simulate(f.s, f.p, f.now, Assumptions{Cycle: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	at := func(minutes int) string { return start().Add(time.Duration(minutes) * time.Minute).Format("15:04:05") }
	var got []string
	for _, turn := range s.Expected.Turns {
		got = append(got, fmt.Sprintf("%s in %d: %s to %s", turn.Node, turn.Stage, turn.Begin.Format("15:04:05"), turn.End.Format("15:04:05")))
	}
	for _, stage := range s.Expected.Stages {
		got = append(got, fmt.Sprintf("%s: %s to %s, %d", stage.Name, stage.Begin.Format("15:04:05"), stage.End.Format("15:04:05"), stage.Turns))
	}
	want := []string{
		"node-000 in 0: " + at(0) + " to " + at(10), "node-001 in 1: " + at(70) + " to " + at(80),
		"node-002 in 2: " + at(80) + " to " + at(90), "node-003 in 2: " + at(90) + " to " + at(100),
		"canary: 12:00:30 to " + at(70) + ", 0", "half: " + at(70) + " to " + at(80) + ", 1", "rest: " + at(80) + " to " + at(100) + ", 2",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// One by one is one plan for each node: to ask more often would take minutes in a large fleet.
func TestSimulationAsksOncePerNode(t *testing.T) {
	f := newFleet(t, 200)
	s, err := Simulate(f.s, f.p, f.now, Assumptions{})
	if err != nil || s.Expected.Ending != EndCompleted || s.Expected.Steps > 203 {
		t.Errorf("%v: %s after %d plans, want it completed after 203 at most", err, s.Expected.Ending, s.Expected.Steps)
	}
	if s.Blast.Nodes != 200 || s.Blast.Broken == 0 || s.Worst.End != s.Expected.End {
		t.Errorf("got %+v, and %s to %s", s.Blast, s.Expected.End, s.Worst.End)
	}
}

func TestSimulationWithoutSense(t *testing.T) {
	for _, a := range []Assumptions{{Cycle: -1}, {WorstCycle: -1}, {ApproveAfter: -1}, {Within: -1}, {Steps: -1}, {Cycle: 2, WorstCycle: 1}} {
		f, invalid := newFleet(t, 1), (*FieldError)(nil)
		if _, err := Simulate(f.s, f.p, f.now, a); !errors.As(err, &invalid) || !strings.HasPrefix(invalid.Field, "assumptions.") {
			t.Errorf("%+v: got error %v, want one that names the field", a, err)
		}
	}
	f, invalid := newFleet(t, 1), (*FieldError)(nil)
	f.p.Groups = []Group{{Name: "g", Nodes: []string{"nobody"}}}
	if _, err := Simulate(f.s, f.p, f.now, Assumptions{}); !errors.As(err, &invalid) || invalid.Field != "groups[0].nodes[0]" {
		t.Errorf("a plan that names an unknown node: got error %v", err)
	}
}
