// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// Learn is the status after an action of a decision with that status has had its outcome. m is the machine that was decided on. It is pure.
func Learn(m Machine, s Status, a Action, o Outcome, now time.Time) Status {
	l := learner{m: m, s: s.clone(), a: a, o: o, now: now}
	switch a.Kind {
	case Lookup, Create, Adopt:
		l.instance()
	case PlanUpdate:
		if l.noError() {
			l.s.planned(m, o.Plan, now)
		}
	case TakeSlot, FreeSlot:
		l.slot(a.Kind == TakeSlot)
	case Drain:
		l.drained()
	case UpdateInstance:
		l.updated()
	case Stop:
		l.stopped()
	case Delete:
		l.deleted()
	case DestroyRetained:
		l.destroyed()
	case AskGates, Leave:
		l.passed()
	case RemoveNode:
		l.removed()
	case Backup:
		l.backedUp()
	case StartNode, Uncordon, FindNodes:
		l.reached()
	}
	return l.s
}

// reached records what keeps a Node from being changed or found.
func (l *learner) reached() {
	if l.o.Err != nil || !l.o.Done {
		l.blocked("node")
	}
}

type learner struct {
	m   Machine
	s   Status
	a   Action
	o   Outcome
	now time.Time
}

// noError records an error of a provider, and forgets an earlier one after a success.
func (l *learner) noError() bool {
	if l.o.Err == nil {
		if f := l.s.Failure; f != nil && !derived(f.Reason) && f.Reason != ReasonInstanceLost {
			l.s.Failure = nil
		}
		return true
	}
	if f := l.s.Failure; f != nil && f.Reason == ReasonInstanceLost && l.a.Kind == Lookup {
		return false // a look that has failed says nothing new
	}
	reason := string(provider.ClassOf(l.o.Err))
	if missing := (*MissingError)(nil); errors.As(l.o.Err, &missing) {
		reason = ReasonMissingSecret
	}
	f := &Failure{Reason: reason, Message: l.o.Err.Error(), Since: l.now}
	if old := l.s.Failure; old != nil && old.Reason == reason {
		f.Since = old.Since
	}
	l.s.Failure = f
	return false
}

func (l *learner) instance() {
	switch class := provider.ClassOf(l.o.Err); {
	case class == provider.NotFound && l.a.Kind == Lookup && l.s.Instance == nil:
		return // it was never made
	case class == provider.NotFound && l.a.Kind == Lookup:
		l.s.Failure = &Failure{Reason: ReasonInstanceLost, Since: l.now,
			Message: fmt.Sprintf("the provider has no instance %q any more: it was not deleted by this machine, and is not made again under the same token", l.a.Token)}
		return
	case class == provider.Conflict && l.a.Kind != Lookup:
		// What was asked for under this token is not what is wanted now. That token is ended, and another one used.
		l.noError()
		l.s.Release = &Release{Replace: true, Conflict: true, Mode: l.m.Spec.Deletion.mode(), Since: l.now}
		return
	}
	if l.noError() {
		l.known()
	}
}

// known takes over what the provider says of the instance.
func (l *learner) known() {
	i := l.o.Instance
	same := l.s.Instance != nil && l.s.Instance.Digest == i.Digest // then what has changed since was no affair of the provider
	l.s.Instance = &i
	if l.s.Failure != nil && l.s.Failure.Reason == ReasonInstanceLost {
		l.s.Failure = nil
	}
	if i.Digest != "" && l.s.Update == nil && !same { // an update ends with what the Node reports
		l.s.asked(l.m.Spec.Desired, i.Digest)
	}
	if i.State == provider.Running && l.s.Step.Name == StepCreating {
		l.s.Step = Step{Name: StepJoining, Since: l.now}
		l.s.Phase = PhaseJoining
	}
}

// forget drops a retained instance that is no more.
func (s *Status) forget(token string) {
	s.Retained = slices.DeleteFunc(slices.Clone(s.Retained), func(r Retained) bool { return r.Token == token })
}

func (l *learner) slot(taken bool) {
	if l.o.Err != nil || !l.o.Done {
		l.blocked("budget")
		return
	}
	loan := ""
	if taken {
		loan = l.a.Attempt
	}
	if u := l.s.Update; u != nil {
		u.Slot, u.Loan = taken, loan
	}
	if r := l.s.Release; r != nil {
		r.Slot, r.Loan = taken, loan
	}
	l.s.Step.Blocker = ""
}

// blocked shows what is in the way.
func (l *learner) blocked(by string) { l.s.Step.Blocker = by + ": " + l.words() }

// words are what is in the way.
func (l *learner) words() string {
	switch {
	case l.o.Err != nil:
		return l.o.Err.Error()
	case l.o.Blocked != "":
		return l.o.Blocked
	}
	return "not yet"
}

// passed passes a step of an end once its outcome is done.
func (l *learner) passed() {
	r := l.s.Release
	if l.o.Err != nil || !l.o.Done || r == nil {
		l.blocked(l.name())
		return
	}
	switch l.a.Kind {
	case AskGates:
		if r.Gated = true; l.o.Unseen {
			r.skip(&r.Gated, "gates", "the workload API does not answer: nobody has looked for data and work on the machine, and its disks are kept")
		}
	case Leave:
		r.Left = true
	case RemoveNode:
		r.NodeGone = true
	}
	l.s.Step.Blocker = ""
}

func (l *learner) name() string {
	switch l.a.Kind {
	case AskGates:
		return "gates"
	case Leave:
		return "members"
	case RemoveNode:
		return "node"
	}
	return string(l.a.Kind)
}

func (l *learner) drained() {
	if l.o.Err != nil || !l.o.Done {
		l.blocked("drain")
		return
	}
	if l.s.Release != nil {
		l.s.Release.Drained = true
	} else if l.s.Update != nil {
		l.s.Update.Drained = true
	}
	l.s.Step.Blocker = ""
}

func (l *learner) updated() {
	if !l.noError() || l.s.Update == nil {
		return
	}
	l.s.Step.Blocker = l.o.Progress.Message
	if l.o.Progress.Done {
		l.s.Update.Done = true
		l.s.Step = Step{Name: StepVerifying, Since: l.now}
	}
}

func (l *learner) stopped() {
	if provider.ClassOf(l.o.Err) == provider.NotFound {
		l.o = Outcome{Progress: provider.Progress{Done: true, Stopped: true}}
	}
	if !l.noError() || l.s.Release == nil {
		return
	}
	l.s.Release.Stopped = l.o.Progress.Done || l.o.Progress.Stopped
	l.s.Step.Blocker = l.o.Progress.Message
}

func (l *learner) deleted() {
	if provider.ClassOf(l.o.Err) == provider.NotFound {
		l.o = Outcome{Progress: provider.Progress{Done: true, Stopped: true}}
	}
	if !l.noError() || l.s.Release == nil {
		return
	}
	r, p := l.s.Release, l.o.Progress
	l.s.Step.Blocker = p.Message
	r.Stopped = r.Stopped || p.Stopped || p.Done
	if !p.Done {
		return
	}
	r.Released = true
	if r.Mode == provider.Retain && len(p.Retained) > 0 {
		l.retain(p.Retained)
	}
}

func (l *learner) retain(disks []provider.Disk) {
	l.s.forget(l.s.Token)
	kept := Retained{Token: l.s.Token, Disks: disks, Since: l.now}
	if l.s.Instance != nil {
		kept.ProviderID = l.s.Instance.ProviderID
	}
	if d := l.m.Spec.Deletion.RetainFor; d > 0 {
		kept.Until = l.now.Add(d)
	}
	l.s.Retained = append(l.s.Retained, kept)
}

func (l *learner) destroyed() {
	if provider.ClassOf(l.o.Err) == provider.NotFound {
		l.o = Outcome{Progress: provider.Progress{Done: true}}
	}
	if l.noError() && l.o.Progress.Done {
		l.s.forget(l.a.Token)
	}
}

// A MissingError means that something that the machine names isn't there.
type MissingError struct{ Kind, Name string }

// Error names it.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s %q is not there", e.Kind, e.Name)
}
