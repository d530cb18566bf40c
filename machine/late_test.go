// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"
	"time"

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
