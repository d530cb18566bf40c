// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/mutate"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// A lateness is something that a new machine waits for, and that does not come.
type lateness struct {
	name  string
	begin func(l *life)
	// good is how long that is no failure, reason and message what it is then, and step where the machine stands.
	good            time.Duration
	step            machine.StepName
	reason, message string
	// asks is what goes on to be asked for; comes is what was waited for.
	asks  string
	comes func(l *life)
}

// unmade is a machine whose instance was never asked for.
func unmade(l *life) {
	m := &l.v.Machine
	m.Status, m.Spec.ProviderID, l.v.Nodes = machine.Status{}, "", nil
	l.answers[machine.Lookup] = machine.Outcome{Err: provider.Errorf(provider.NotFound, "there is none")}
	m.UID = "uid"
}

// made answers a Create with an instance in that state.
func (l *life) made(state provider.State) {
	i := l.done(machine.Action{Token: provider.Token("c1", "uid", 1)}).Instance
	i.State = state
	l.answers[machine.Create] = machine.Outcome{Done: true, Instance: i}
	l.answers[machine.Lookup] = l.answers[machine.Create]
}

func refused(l *life) {
	err := provider.Errorf(provider.Unavailable, "no route")
	l.answers[machine.Create] = machine.Outcome{Err: err}
}

func nodes(ready bool, names ...string) func(l *life) {
	return func(l *life) {
		l.v.Nodes = nil
		for _, name := range names {
			n := node(name)
			n.Ready = ready
			l.v.Nodes = append(l.v.Nodes, n)
		}
	}
}

func latenesses() []lateness {
	return []lateness{
		{name: "nobody makes the instance", begin: both(unmade, refused), good: 20 * time.Minute, step: machine.StepCreating, reason: machine.ReasonCreateTimeout,
			message: "step Creating takes longer than 20m0s: ", asks: "Lookup Create", comes: both(func(l *life) { l.made(provider.Running) }, nodes(true, "n"))},
		{name: "the instance does not start", begin: both(unmade, func(l *life) { l.made(provider.Pending) }), good: 20 * time.Minute, step: machine.StepCreating,
			reason: machine.ReasonCreateTimeout, message: "step Creating takes longer than 20m0s", asks: "Create",
			comes: both(func(l *life) { l.made(provider.Running) }, nodes(true, "n"))},
		{name: "no Node joins", begin: both(unmade, func(l *life) { l.made(provider.Running) }), good: 15 * time.Minute, step: machine.StepJoining,
			reason: machine.ReasonJoinTimeout, message: "step Joining takes longer than 15m0s", comes: nodes(true, "n")},
		{name: "the Node is gone", begin: nodes(true), good: 15 * time.Minute, step: machine.StepJoining,
			reason: machine.ReasonJoinTimeout, message: "step Joining takes longer than 15m0s", comes: nodes(true, "n")},
		{name: "the Node is not ready", begin: both(both(unmade, nodes(false, "n")), func(l *life) { l.made(provider.Running) }), good: 15 * time.Minute, step: machine.StepStarting,
			reason: machine.ReasonJoinTimeout, message: "step Starting takes longer than 15m0s", comes: nodes(true, "n")},
		{name: "the checks of its roles do not pass", begin: both(both(unmade, nodes(true, "n")), func(l *life) { l.made(provider.Running); l.v.Started = "no endpoint" }),
			good: 15 * time.Minute, step: machine.StepStarting, reason: machine.ReasonStartTimeout, message: "step Starting takes longer than 15m0s: no endpoint",
			comes: func(l *life) { l.v.Started = "" }},
		{name: "there are two Nodes", begin: nodes(true, "n", "other"), step: machine.StepReady,
			reason: machine.ReasonSeveralNodes, message: `Nodes "n" and "other" have the same ProviderID`, comes: nodes(true, "n")},
	}
}

// R-MA-01 and R-MA-16: what a machine waits for in vain is a failure after its time, and not before; the reason stands in its status, and what can be asked for goes on to
// be. When it comes after all, the machine runs, and has no failure any more.
func TestWaitsInVain(t *testing.T) {
	for _, c := range latenesses() {
		t.Run(c.name, func(t *testing.T) {
			l := newLife(t, "worker")
			c.begin(l)
			if c.good > 0 {
				l.run(c.good)
				if at := l.v.Machine; at.Phase == machine.PhaseFailed || at.Step.Name != c.step || at.Step.Blocker == "" {
					t.Fatalf("R-MA-16: before its time it is %s at %+v, failure %+v", at.Phase, at.Step, at.Failure)
				}
			}
			l.run(2 * time.Minute)
			c.failed(l)
			c.comes(l)
			l.run(5 * time.Minute)
			if at := l.v.Machine; at.Phase != machine.PhaseRunning || at.Failure != nil || at.Incarnation != 1 {
				t.Errorf("R-MA-01: it has come, and the machine is %s at %+v, failure %+v", at.Phase, at.Step, at.Failure)
			}
		})
	}
}

// failed looks at it for an hour.
func (c lateness) failed(l *life) {
	l.t.Helper()
	since := l.v.Now
	l.did = nil
	l.run(time.Hour)
	at := l.v.Machine
	if f := at.Failure; at.Phase != machine.PhaseFailed || f == nil || f.Reason != c.reason || !strings.HasPrefix(f.Message, c.message) || !f.Since.Before(since) {
		l.t.Errorf("R-MA-16: it is %s at %+v, failure %+v", at.Phase, at.Step, f)
	}
	if got := strings.Join(l.did[:min(len(l.did), len(strings.Fields(c.asks)))], " "); got != c.asks || at.Release != nil {
		l.t.Errorf("R-MA-01: %q goes on to be asked for, want %q; release %+v", got, c.asks, at.Release)
	}
}

// R-MA-19, R-MA-22 and R-MA-16: each way to wait for ever, to go past something too early, or to say nothing of it is noticed.
func TestMutantsOfEscapes(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "an update says nothing of its drain", File: "update.go", Run: "TestEscapesOfAnUpdate",
			Old: "u.skip(&u.Drained, \"drain\", fmt.Sprintf(\"not empty after %v: %s\", limit, p.s.Step.Blocker))", New: "u.Drained = true"},
		{Name: "an update drains for ever", File: "update.go", Run: "TestEscapesOfAnUpdate",
			Old: "case limit > 0 && p.s.Step.Name == StepDraining && p.Now.Sub(p.s.Step.Since) >= limit:", New: "case limit < 0:"},
		{Name: "an update drains though nobody wants it to", File: "update.go", Run: "TestEscapesOfAnUpdate",
			Old: "case p.overridden(\"drain\"):", New: "case false:"},
		{Name: "an edit forgets what was passed", File: "update.go", Run: "TestOverridesOutlive", Old: "s.Update.Sent, s.Update.Overrides\n", New: "s.Update.Sent, nil\n"},
		{Name: "an update says nothing of its backup", File: "backup.go", Run: "TestEscapesOfAnUpdate",
			Old: "u.skip(&u.BackedUp, \"backup\", \"the annotation \"+OverrideAnnotation)", New: "u.BackedUp = true"},
		{Name: "an end drains for ever", File: "release.go", Run: "TestEscapesOfAnEnd",
			Old: "case limit > 0 && p.s.Step.Name == StepDraining && p.Now.Sub(p.s.Step.Since) >= limit:", New: "case limit < 0:"},
		{Name: "a drain has a time though it has none", File: "release.go", Run: "TestEscapesOfAnEnd",
			Old: "case limit > 0 && p.s.Step.Name == StepDraining && p.Now.Sub(p.s.Step.Since) >= limit:",
			New: "case p.s.Step.Name == StepDraining && p.Now.Sub(p.s.Step.Since) >= max(limit, time.Hour):"},
		{Name: "what is lost is drained", File: "release.go", Run: "TestEscapesOfAnEnd", Old: "	case lost:\n", New: "	case lost && limit > 0:\n"},
		{Name: "a hook is for ever", File: "release.go", Run: "TestEscapesOfAnEnd", Old: "case h.Timeout > 0 && p.Now.Sub(since) >= h.Timeout:", New: "case h.Timeout < 0:"},
		{Name: "a hook is not waited for", File: "release.go", Run: "TestEscapesOfAnEnd", Old: "case h.Timeout > 0 && p.Now.Sub(since) >= h.Timeout:", New: "case h.Timeout > 0:"},
		{Name: "hooks can't be overridden", File: "release.go", Run: "TestEscapesOfAnEnd", Old: "case p.overridden(\"hooks\"):", New: "case false:"},
		{Name: "members can't be overridden", File: "release.go", Run: "TestEscapesOfAnEnd", Old: "case p.overridden(\"leave\"):", New: "case false:"},
		{Name: "the proof of the stop can't be overridden", File: "release.go", Run: "TestEscapesOfAnEnd",
			Old: "if !r.Stopped && p.overridden(\"stopped\") {", New: "if false {"},
		{Name: "a Node that stays is waited for for ever", File: "release.go", Run: "TestEscapesOfAnEnd",
			Old: "return p.overridden(\"node\") && p.s.Step.Name == StepNode &&", New: "return false && p.s.Step.Name == StepNode &&"},
		{Name: "a Node that nobody knows is waited for for ever", File: "release.go", Run: "TestEscapesOfAnEnd", Old: "case p.overridden(\"node\"):", New: "case false:"},
		{Name: "what was passed is not written down", File: "release.go", Run: "TestEscapesOfAnEnd", Old: "	return append(all, text)\n", New: "	return all\n"},
		{Name: "a Node that nobody can remove is given up at once", File: "release.go", Run: "TestNodeIsTried",
			Old: "&& strings.HasPrefix(p.s.Step.Blocker, \"node: \")", New: "|| strings.HasPrefix(p.Machine.Annotations[OverrideAnnotation], \"node\")"},
		{Name: "an instance may take for ever", File: "decide.go", Run: "TestWaitsInVain",
			Old: "if d, over := p.timedOut(StepCreating, or(p.Create, defaultCreate), ReasonCreateTimeout); over {", New: "if d, over := (*Failure)(nil), false; over {"},
		{Name: "a start may take for ever", File: "decide.go", Run: "TestWaitsInVain",
			Old: "if f, over := p.timedOut(StepCreating, or(p.Create, defaultCreate), ReasonCreateTimeout); over {", New: "if f, over := (*Failure)(nil), false; over {"},
		{Name: "a Node may take for ever to join", File: "decide.go", Run: "TestWaitsInVain",
			Old: "if f, over := p.timedOut(StepJoining, or(p.Join, defaultJoin), ReasonJoinTimeout); over {", New: "if f, over := (*Failure)(nil), false; over {"},
		{Name: "a Node may take for ever to be ready", File: "decide.go", Run: "TestWaitsInVain",
			Old: "if f, over := p.timedOut(StepStarting, or(p.Join, defaultJoin), ReasonJoinTimeout); over {", New: "if f, over := (*Failure)(nil), false; over {"},
		{Name: "the checks of roles may take for ever", File: "decide.go", Run: "TestWaitsInVain",
			Old: "if f, over := p.timedOut(StepStarting, limit, ReasonStartTimeout); over {", New: "if f, over := (*Failure)(nil), false; over {"},
		{Name: "a machine goes though its Node may be left", File: "stray.go", Run: "TestNodeIsNotLeftBehind",
			Old: "	case i < 0:\n		return Decision{}, false", New: "	case i < 9:\n		return Decision{}, false"},
		{Name: "a Node that was not removed is not looked for again", File: "stray.go", Run: "TestNodeIsNotLeftBehind",
			Old: "d.Action = Action{Kind: RemoveNode, Token: d.Status.Strays[i].Token}", New: "_ = i"},
		{Name: "what is left behind is not stored before its machine goes", File: "stray.go", Run: "TestNodeIsNotLeftBehind",
			Old: "		return p.said(), true\n	}\n	return p.wait(StepNode", New: "		return Decision{}, false\n	}\n	return p.wait(StepNode"},
		{Name: "a Node that can't be removed counts as removed", File: "stray.go", Run: "TestNodeIsNotLeftBehind",
			Old: "case l.o.Done && l.o.Err == nil:", New: "case l.o.Done || l.o.Blocked != \"\":"},
		{Name: "a failure is as new as the last try", File: "step.go", Run: "TestWaitsInVain", Old: "f.Since = p.s.Step.Since.Add(limit)", New: "_ = f.Since"},
		{Name: "one of two Nodes is taken", File: "decide.go", Run: "TestWaitsInVain", Old: "case len(p.Nodes) > 1:", New: "case len(p.Nodes) > 2:"},
	})
}

// R-MA-22: who does not want to wait for the removal of a Node does not keep one that can be removed.
func TestNodeIsTriedFirst(t *testing.T) {
	l := newLife(t, "worker")
	l.overridden("node")
	l.v.Machine.Deleted = l.v.Now
	l.run(time.Hour)
	if !l.gone || !strings.HasSuffix(l.asked(), "Stop RemoveNode Delete FreeSlot RemoveFinalizer") || len(l.overrides) > 0 {
		t.Errorf("R-MA-22: %q, overrides %q", l.asked(), l.overrides)
	}
}
