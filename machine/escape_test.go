// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// The annotation, as it stands in what is written down.
const byAnnotation = "the annotation machine.belay.dev/override"

// An escape is something that a machine waits for, and the way past it.
type escape struct {
	name string
	// begin is what is in the way.
	begin func(l *life)
	// waits is how long it has to wait at that step for that; until then nothing after it is asked for.
	waits   time.Duration
	step    machine.StepName
	blocker string
	before  string
	// override is what somebody writes then; with none of it, its time is over.
	override string
	// overrides is what is written down, after what is asked for until the end.
	overrides []string
	after     string
}

func stuck(kind machine.ActionKind, o machine.Outcome, change ...func(*machine.Machine)) func(*life) {
	return func(l *life) {
		l.answers[kind] = o
		for _, c := range change {
			c(&l.v.Machine)
		}
	}
}

func blockedBy(why string) machine.Outcome { return machine.Outcome{Blocked: why} }

func drainFor(d time.Duration) func(*machine.Machine) {
	return func(m *machine.Machine) { m.Spec.Deletion.DrainTimeout = d }
}

func hooked(phase machine.HookPhase, timeout time.Duration) func(*life) {
	return func(l *life) {
		hooks := &l.v.Machine.Spec.Deletion.Hooks
		*hooks = append(*hooks, machine.Hook{Name: string(phase), Owner: "ops", Phase: phase, Timeout: timeout})
	}
}

// both begins two things.
func both(a, b func(*life)) func(*life) { return func(l *life) { a(l); b(l) } }

// away is a workload API that has gone now.
func away(timeout time.Duration) func(*life) {
	return func(l *life) {
		l.v.NodesKnown, l.v.Nodes, l.v.NodesUnknown = false, nil, l.v.Now
		l.v.Machine.Spec.Deletion.NodeTimeout = timeout
	}
}

const (
	budget  = "pod default/db: its budget allows nothing"
	long    = 100 * time.Hour
	asks    = "AskGates TakeSlot Drain"
	goes    = "AskGates Leave Stop RemoveNode Delete FreeSlot RemoveFinalizer"
	unasked = "Leave Stop RemoveNode Delete FreeSlot RemoveFinalizer"
)

// ends are those of a machine that is deleted.
func ends() []escape {
	return []escape{
		{name: "gates", begin: stuck(machine.AskGates, blockedBy("no quorum")), waits: long, step: machine.StepGates, blocker: "gates: no quorum", before: "AskGates",
			override: "gates", overrides: []string{"gates: " + byAnnotation}, after: "TakeSlot Drain " + unasked},
		{name: "hook before the drain, in its time", begin: hooked(machine.BeforeDrain, 30*time.Minute), waits: 29 * time.Minute, step: machine.StepHooks,
			blocker: `hook "BeforeDrain" of ops`, before: "AskGates TakeSlot", overrides: []string{"hook BeforeDrain: ops has not taken it away in 30m0s"}, after: "Drain " + goes},
		{name: "hook before the stop, in its time", begin: hooked(machine.BeforeStop, 30*time.Minute), waits: 29 * time.Minute, step: machine.StepLeaving,
			blocker: `hook "BeforeStop" of ops`, before: asks, overrides: []string{"hook BeforeStop: ops has not taken it away in 30m0s"}, after: goes},
		{name: "hook before the drain", begin: hooked(machine.BeforeDrain, 0), waits: long, step: machine.StepHooks, blocker: `hook "BeforeDrain" of ops`,
			before: "AskGates TakeSlot", override: "hooks", overrides: []string{"hook BeforeDrain: " + byAnnotation}, after: "Drain " + goes},
		{name: "all hooks", begin: both(hooked(machine.BeforeStop, 0), hooked(machine.BeforeDrain, 30*time.Minute)), waits: long, step: machine.StepLeaving,
			blocker: `hook "BeforeStop" of ops`, before: asks, override: "hooks, x",
			overrides: []string{"hook BeforeDrain: ops has not taken it away in 30m0s", "hook BeforeStop: " + byAnnotation}, after: goes},
		{name: "drain, in its time", begin: stuck(machine.Drain, blockedBy(budget), drainFor(30*time.Minute)), waits: 29 * time.Minute, step: machine.StepDraining,
			blocker: "drain: " + budget, before: asks, overrides: []string{"drain: not empty after 30m0s: drain: " + budget}, after: goes},
		{name: "drain", begin: stuck(machine.Drain, blockedBy(budget)), waits: long, step: machine.StepDraining, blocker: "drain: " + budget, before: asks,
			override: "drain", overrides: []string{"drain: " + byAnnotation}, after: goes},
		{name: "drain of what is lost", begin: func(l *life) { l.v.Machine.Failure = &machine.Failure{Reason: machine.ReasonInstanceLost} },
			overrides: []string{"drain: the instance is lost"}, after: "AskGates TakeSlot " + goes},
		{name: "members", begin: stuck(machine.Leave, blockedBy("no leader")), waits: long, step: machine.StepLeaving, blocker: "members: no leader",
			before: asks + " AskGates Leave", override: "leave", overrides: []string{"leave: " + byAnnotation}, after: "Stop RemoveNode Delete FreeSlot RemoveFinalizer"},
		{name: "proof of the stop", begin: stuck(machine.Stop, machine.Outcome{Progress: provider.Progress{Message: "no power"}}), waits: long, step: machine.StepStopping,
			blocker: "no power", before: asks + " AskGates Leave Stop", override: "stopped", overrides: []string{"stopped: " + byAnnotation},
			after: "RemoveNode Delete FreeSlot RemoveFinalizer"},
		{name: "Node that can't be removed", begin: stuck(machine.RemoveNode, machine.Outcome{Err: errors.New("forbidden")}), waits: long, step: machine.StepNode,
			blocker: "node: forbidden", before: asks + " AskGates Leave Stop RemoveNode", override: "node",
			overrides: []string{`node: ` + byAnnotation + `; Node "n" is still there: node: forbidden`}, after: "Delete FreeSlot RemoveFinalizer"},
		{name: "workload API", begin: away(1000 * time.Hour), waits: long, step: machine.StepDraining, blocker: "the workload API doesn't answer", before: "AskGates",
			override: "drain,node", overrides: []string{"drain: " + byAnnotation, "node: " + byAnnotation}, after: "AskGates Leave Stop Delete RemoveFinalizer"},
	}
}

// R-MA-19 and R-MA-22: whatever an end waits for, nothing that comes after it is asked for, and the machine says what it is. There is a way past each of it, by a time or
// by somebody who says so, and what was passed is written down, with the reason.
func TestEscapesOfAnEnd(t *testing.T) {
	for _, c := range ends() {
		t.Run(c.name, func(t *testing.T) {
			l := newLife(t, "worker")
			c.begin(l)
			l.v.Machine.Deleted = l.v.Now
			c.test(l)
			if !l.gone {
				t.Errorf("R-MA-22: it is at %+v, release %+v", l.v.Machine.Step, l.v.Machine.Release)
			}
		})
	}
}

func (c escape) test(l *life) {
	l.t.Helper()
	if c.waits > 0 {
		l.run(c.waits)
		at := l.v.Machine.Step
		if at.Name != c.step || at.Blocker != c.blocker || l.asked() != c.before || len(l.overrides) > 0 && !slices.Contains(c.overrides, l.overrides[0]) {
			l.t.Fatalf("R-MA-19: it is at %s and waits for %q after %q, want %s, %q and %q; overrides %q", at.Name, at.Blocker, l.asked(), c.step, c.blocker, c.before, l.overrides)
		}
	}
	if c.override != "" {
		l.overridden(c.override)
	}
	l.did = nil
	l.run(2 * time.Hour)
	// What is tried until its time is over comes once more.
	if got := strings.TrimPrefix(l.asked(), c.before[strings.LastIndex(c.before, " ")+1:]+" "); got != c.after && l.asked() != c.after {
		l.t.Errorf("R-MA-22: past it %q was asked for, want %q", l.asked(), c.after)
	}
	if diff := cmp.Diff(c.overrides, l.overrides); diff != "" {
		l.t.Errorf("R-MA-22: what was passed (-want +got):\n%s", diff)
	}
}

// R-MA-19: a change in place waits for its drain and its backup as an end does, and what is not waited for any more is written down as well.
func TestEscapesOfAnUpdate(t *testing.T) {
	const updates, ready = "UpdateInstance Uncordon FreeSlot", "PlanUpdate TakeSlot"
	for _, c := range []escape{
		{name: "drain, in its time", begin: stuck(machine.Drain, blockedBy(budget), drainFor(30*time.Minute)), waits: 29 * time.Minute, step: machine.StepDraining,
			blocker: "drain: " + budget, before: ready + " Drain", overrides: []string{"drain: not empty after 30m0s: drain: " + budget}, after: updates},
		{name: "drain", begin: stuck(machine.Drain, blockedBy(budget)), waits: long, step: machine.StepDraining, blocker: "drain: " + budget, before: ready + " Drain",
			override: "drain", overrides: []string{"drain: " + byAnnotation}, after: updates},
		{name: "backup", begin: stuck(machine.Backup, blockedBy("no space"), roles("control-plane")), waits: long, step: machine.StepBackup, blocker: "backup: no space",
			before: ready + " Backup", override: "backup", overrides: []string{"backup: " + byAnnotation}, after: "Drain " + updates},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLife(t, "worker")
			c.begin(l)
			l.v.Machine.Digest = l.v.Machine.Spec.Digest()
			l.v.Machine.Spec.Config = []byte(`{"image":"b"}`)
			c.test(l)
			if at := l.v.Machine; at.Update != nil || at.Phase != machine.PhaseRunning || at.Digest != at.Spec.Digest() {
				t.Errorf("R-MA-19: it is %s at %+v, update %+v", at.Phase, at.Step, at.Update)
			}
		})
	}
}

// R-MA-19: what an update was told not to wait for stays written down when another change comes in the middle of it.
func TestOverridesOutliveAnEdit(t *testing.T) {
	l := newLife(t, "worker")
	stuck(machine.Drain, blockedBy(budget), drainFor(30*time.Minute))(l)
	l.answers[machine.UpdateInstance] = machine.Outcome{Progress: provider.Progress{Message: "it restarts"}}
	l.v.Machine.Spec.Config = []byte(`{"image":"b"}`)
	l.run(time.Hour)
	first := l.v.Machine.Update
	l.v.Machine.Spec.Config = []byte(`{"image":"c"}`)
	l.overrides = nil
	l.run(time.Minute)
	if u := l.v.Machine.Update; first == nil || u == nil || u.Digest == first.Digest || len(first.Overrides) != 1 || !slices.Equal(u.Overrides, first.Overrides) {
		t.Errorf("R-MA-19: the update is %+v, and was %+v", u, first)
	}
}
