// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"time"
)

// turns reports whether this machine is one of those that are changed one by one, each after its backup, if there are backups.
func (p *pass) turns() bool { return Protected(p.Machine.Spec.Roles) }

// turn has a machine of the control plane wait until it is alone, for a change that was planned at that time, and has done what comes before that. It queues, which is
// stored, and when nobody goes first it claims its turn, which is stored too; then it looks again. Of two that claim at once each sees the other, or one of them does and
// waits: so no two are past this, however their reads and writes mix, and whoever is killed in between. Who comes later takes the claim back.
func (p *pass) turn(since time.Time) Decision {
	switch name := p.s.Step.Name; {
	case p.overridden("backup"):
		if r, u := p.s.Release, p.s.Update; r != nil {
			r.skip(&r.BackedUp, "backup", "the annotation "+OverrideAnnotation)
		} else if u != nil {
			u.skip(&u.BackedUp, "backup", "the annotation "+OverrideAnnotation)
		}
		return Decision{Status: p.s, Store: true, After: time.Second}
	case name != StepTurn && name != StepBackup:
		return p.turnTo(StepTurn, time.Second)
	case p.Busy != "" && (name == StepTurn || !p.Yield):
		return p.wait(name, p.Busy, pollInstance)
	case p.Busy != "":
		return p.turnTo(StepTurn, pollInstance)
	case name == StepTurn:
		return p.turnTo(StepBackup, time.Second)
	case !p.Backup:
		p.s.backedUp() // there is nothing to be done
		return Decision{Status: p.s, Store: true, After: time.Second}
	}
	return p.ask(StepBackup, Action{Kind: Backup, Attempt: p.attempt(since)})
}

// turnTo stores where it stands, and ends the pass.
func (p *pass) turnTo(name StepName, after time.Duration) Decision {
	p.step(name, p.Busy)
	return Decision{Status: p.s, Store: true, After: after}
}

// attempt names a change that began at that time among all of the machine.
func (p *pass) attempt(since time.Time) string {
	return fmt.Sprintf("%d-%d", p.s.Incarnation, since.Unix())
}

func (s *Status) backedUp() {
	if s.Release != nil {
		s.Release.BackedUp = true
	} else if s.Update != nil {
		s.Update.BackedUp = true
	}
}

// Changing reports whether a machine is being updated, replaced or ended, or is about to be, and waits for its turn. sent means that it can't be held up any more.
func (m Machine) Changing() (changing, sent bool) {
	switch r, u := m.Release, m.Update; {
	case r != nil:
		sent = r.Begun || r.Replace && r.BackedUp
	case u != nil:
		sent = u.BackedUp || u.Sent || u.Done
	}
	return sent || m.Step.Name == StepTurn || m.claims(), sent
}

// claims means that it would go next, if nobody else does.
func (m Machine) claims() bool { return m.Step.Name == StepBackup }

// before reports whether of two machines that are about to be changed this one goes first: the one that has come to that first. Ties are broken by name.
func (m Machine) before(o Machine) bool {
	if !m.Step.Since.Equal(o.Step.Since) {
		return m.Step.Since.Before(o.Step.Since)
	}
	return compareKeys(m.Key, o.Key) < 0
}

// stands means that a machine does its part in the control plane, for all that its status says.
func (m Machine) stands() bool {
	return m.Phase == PhaseUpdating || m.Phase == PhaseRunning && (m.Step.Name != StepReady || m.Step.Blocker != notReady)
}

// fell means that a machine may be counted by the control plane, and does not do its part. One that ends, or has never had an instance, is not counted.
func (m Machine) fell() bool {
	counted := m.Deleted.IsZero() && m.Release == nil && m.Phase != PhaseRetired && (m.Instance != nil || m.Incarnation > 1)
	return counted && !m.stands()
}

// WaitsFor is why this machine of the control plane, which is to be changed, waits for that one; empty if it does not. One that is being changed is waited for, and so is
// one that came to that first, unless it is paused: what it was about to do then was decided on another version of it, and it looks again before it does anything. One that
// does not work is waited for by those that do: to disturb another one then may cost the quorum. It is not by one that does not work itself, nor by one that is at its turn
// already. yields means that both have claimed their turn, and that the other one's comes first.
func (m Machine) WaitsFor(o Machine) (why string, yields bool) {
	if m.UID == o.UID || !Protected(m.Spec.Roles) || !Protected(o.Spec.Roles) {
		return "", false
	}
	changing, sent := o.Changing()
	mine, _ := m.Changing()
	claims := !sent && o.claims() && !o.Spec.Paused
	queues := changing && mine && !o.Spec.Paused
	switch {
	case sent, claims, queues && o.precedes(m):
		return fmt.Sprintf("machine %q of the control plane is being changed: they go one by one", o.Key), claims && m.claims() && o.before(m)
	case !mine && m.stands() && o.fell():
		return fmt.Sprintf("machine %q of the control plane does not work: it is mended first, or taken out", o.Key), false
	}
	return "", false
}

// precedes means that another one queues behind this one: it has not claimed its turn.
func (m Machine) precedes(o Machine) bool { return !o.claims() && m.before(o) }

func (l *learner) backedUp() {
	if l.o.Err != nil || !l.o.Done {
		l.blocked("backup")
		return
	}
	l.s.backedUp()
	l.s.Step.Blocker = ""
}
