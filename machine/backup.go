// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"time"
)

// backs reports whether something has to come before a change of this machine.
func (p *pass) backs() bool { return p.Backup && Protected(p.Machine.Spec.Roles) }

// backup has that done, for a change that was planned at that time. That it begins is stored before, so that a crash makes no other attempt of it, and so that
// others see it: of several machines of the control plane one goes at a time.
func (p *pass) backup(since time.Time) Decision {
	a := Action{Kind: Backup, Attempt: p.attempt(since)}
	switch {
	case p.overridden("backup"):
		if r, u := p.s.Release, p.s.Update; r != nil {
			r.skip(&r.BackedUp, "backup", "the annotation "+OverrideAnnotation)
		} else if u != nil {
			u.skip(&u.BackedUp, "backup", "the annotation "+OverrideAnnotation)
		}
		return Decision{Status: p.s, Store: true, After: time.Second}
	case p.s.Step.Name != StepBackup:
		p.step(StepBackup, p.Busy)
		return Decision{Status: p.s, Store: true, After: time.Second}
	case p.Busy != "":
		return p.wait(StepBackup, p.Busy, pollInstance)
	}
	return p.ask(StepBackup, a)
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

// Changing reports whether a machine is being updated, replaced or ended, or is about to be backed up before that. sent means that it can't be held up any more.
func (m Machine) Changing() (changing, sent bool) {
	switch r, u := m.Release, m.Update; {
	case r != nil:
		sent = r.Begun || r.Replace && r.BackedUp
	case u != nil:
		sent = u.BackedUp || u.Sent || u.Done
	}
	return sent || m.Step.Name == StepBackup, sent
}

// Before reports whether of two machines that are about to be changed this one goes first: the one that has come to that first. Ties are broken by name.
func (m Machine) Before(o Machine) bool {
	if !m.Step.Since.Equal(o.Step.Since) {
		return m.Step.Since.Before(o.Step.Since)
	}
	return compareKeys(m.Key, o.Key) < 0
}

func (l *learner) backedUp() {
	if l.o.Err != nil || !l.o.Done {
		l.blocked("backup")
		return
	}
	l.s.backedUp()
	l.s.Step.Blocker = ""
}
