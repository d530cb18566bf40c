// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

// A view is all that a decision is made of.
type view struct {
	// online: the shadow could be read. Otherwise what is on the disk stands for it, without orders.
	online bool
	shadow Shadow
	disk   record
	seen   Observation
	mind   mind
	limits limits
}

// limits are the options that decisions depend on.
type limits struct {
	verifyFor, verifyEvery, verifyWithin, applyTimeout time.Duration
	revertBroken                                       bool
}

// A mind is what a process knows and another one does not.
type mind struct {
	ran   ran
	check check
	// note is trouble with what has to be done next.
	note why
}

// ran is the last call of Apply or Revert.
type ran struct {
	key       string
	back      bool // the way back after a failed verification
	rebooting bool // a reboot is under way since at
	at        time.Time
	why       why
}

// An act is what an action does.
type act int

const (
	wait    act = iota // until the shadow changes, or after
	tell               // put the record, store its status
	run                // put the record, call Apply or Revert
	verify             // call Verify, put the trial
	prepare            // call Prepare, then tell
	answer             // ask for the UID, call Preflight, then tell
	begin              // ask for the UID, then tell
	quick              // ask for the UID, then run
)

// An action is one step.
type action struct {
	act    act
	event  protocol.Event
	record record
	after  time.Duration
	// refuse is why an answer is a refusal, without asking.
	refuse why
}

// decide says what to do next. It is pure.
func decide(v view, now time.Time) action {
	begun, lost := v.begun(), v.online && !v.disk.isOf(v.shadow)
	if v.online && !begun {
		sh := v.shadow.protocol()
		if r, changed := protocol.Recall(sh, v.disk.report(sh)); changed {
			rec := v.disk
			rec.UID, rec.Status.Report = v.shadow.UID, r
			if r.Phase == "" {
				rec = record{UID: rec.UID, Status: Status{Report: r}}
			}
			return v.tell(protocol.EventRecall, rec)
		}
	}
	v = v.reconciled()
	switch v.shadow.Status.Report.Phase {
	case protocol.PhaseCommitted:
		if begun {
			return v.settle(v.mind.ran.why)
		}
		return v.committed(lost)
	case protocol.PhaseApplying:
		return v.applying(now)
	case protocol.PhaseVerifying:
		return v.verifying(now)
	case protocol.PhaseFailedBroken:
		return v.broken(now)
	}
	return v.resting()
}

// reconciled is the view in which shadow and record speak of the same attempt.
func (v view) reconciled() view {
	if v.online {
		v.disk = v.disk.of(v.shadow)
		return v
	}
	v.shadow = Shadow{UID: v.disk.UID, Status: v.disk.Status}
	v.shadow.Status.Report.Known = true
	return v
}

// inherits reports whether an attempt is under way of which the disk knows nothing. It is of this node if the record was lost, and of another one if the
// Node was registered anew, on another machine or another disk, and the shadow is not collected yet.
func (v view) inherits() bool {
	return v.online && !v.disk.isOf(v.shadow) && !v.shadow.Status.Report.Phase.AtRest()
}

// begun reports whether this process has applied the committed attempt, and has told the disk alone that it begins. An agent that was killed meanwhile,
// and one that waits for a boot, tell the shadow first.
func (v view) begun() bool {
	disk, sh, last := v.disk.Status.Report.Phase, v.shadow.Status.Report.Phase, v.mind.ran
	if !v.online || !v.disk.isOf(v.shadow) || disk != protocol.PhaseApplying || sh != protocol.PhaseCommitted {
		return false
	}
	_, err := v.shadow.protocol().Answer(protocol.EventApplied)
	return err == nil && last.key == v.disk.Key && !last.back && !last.rebooting && v.disk.Boot == v.seen.BootID
}

// committed waits for the controller's word. lost says that the disk knows nothing of the attempt: one that may have begun is not begun again.
func (v view) committed(lost bool) action {
	sh := v.shadow.protocol()
	if r, err := sh.Answer(protocol.EventUndone); err == nil {
		return v.tell(protocol.EventUndone, v.with(r, why{}))
	}
	if r, err := sh.Answer(protocol.EventApply); err == nil {
		rec := v.with(r, why{})
		rec.Boot = v.seen.BootID
		a := v.tell(protocol.EventApply, rec)
		switch a.act = begin; {
		case rec.isQuick() && lost:
			return v.settle(why{})
		case rec.isQuick():
			a.act = quick
		}
		return a
	}
	return v.idle(0)
}

// applying calls the updater until it has returned, or the node has booted.
func (v view) applying(now time.Time) action {
	rec, last := v.disk, v.mind.ran
	called := last.key == rec.Key && !last.back
	switch {
	case rec.Boot != v.seen.BootID:
		return v.settle(why{})
	case called && last.rebooting && now.Sub(last.at) < v.limits.applyTimeout:
		return v.idle(v.limits.applyTimeout - now.Sub(last.at))
	case called:
		return v.settle(last.why)
	}
	return action{act: run, record: rec}
}

// settle says what an attempt came to, from what the node runs.
func (v view) settle(w why) action {
	rec := v.disk
	switch {
	case v.isAt(rec.target()):
		return v.turn(protocol.EventApplied, why{})
	case rec.Status.From.Is(v.seen.Current):
		return v.turn(protocol.EventFellBack, w.or(reasonFellBack, "the node runs what it ran before, "+rec.Status.From.String()))
	}
	return v.turn(protocol.EventBroke, w.or(reasonRunsOther, "the node runs "+quoted(v.seen.Current)+", want "+quoted(rec.target())))
}

// isAt reports whether the node runs a revision, or is finding out whether that is to blame for how it did.
func (v view) isAt(r protocol.Revision) bool { return r.Is(v.seen.Current) || v.isSuspect(r) }

func (v view) isSuspect(r protocol.Revision) bool {
	return v.seen.Suspect.Name != "" && r.Is(v.seen.Suspect)
}

// verifying watches the node, and takes it back if that is asked for.
func (v view) verifying(now time.Time) action {
	rec := v.disk
	switch {
	case rec.Back != "":
		return v.goingBack(now)
	case !v.isAt(rec.target()):
		return v.settle(why{})
	case v.passed() && rec.Trial.Boot == v.seen.BootID && rec.Trial.Healthy >= v.limits.verifyFor:
		return v.turn(protocol.EventVerified, why{})
	case rec.Trial.Spent >= v.limits.verifyWithin:
		return v.giveUp()
	}
	return v.watch(now, v.limits.verifyEvery)
}

// giveUp ends a verification that has come to its bound.
func (v view) giveUp() action {
	rec, w := v.disk, v.disk.Trial.Why.or(reasonNotHealthy, "the node was not healthy for "+v.limits.verifyFor.String()+" within "+v.limits.verifyWithin.String())
	back := rec.Status.From
	runsIt := back.Is(v.seen.Current) && !v.isSuspect(rec.target())
	if !v.limits.revertBroken || rec.Revert || !v.seen.CanRevert || back.Name == "" || runsIt {
		return v.turn(protocol.EventBroke, w)
	}
	rec.Back, rec.Why = v.seen.BootID, w
	return action{act: run, record: rec}
}

// goingBack calls Revert until it has returned, or the node has booted.
func (v view) goingBack(now time.Time) action {
	rec, last := v.disk, v.mind.ran
	called := last.key == rec.Key && last.back
	switch {
	case rec.Back == v.seen.BootID && !called:
		return action{act: run, record: rec}
	case rec.Back == v.seen.BootID && last.rebooting && now.Sub(last.at) < v.limits.applyTimeout:
		return v.idle(v.limits.applyTimeout - now.Sub(last.at))
	case rec.Status.From.Is(v.seen.Current):
		return v.turn(protocol.EventFellBack, rec.Why)
	case rec.Back == v.seen.BootID:
		return v.turn(protocol.EventBroke, last.why.or(rec.Why.Reason, rec.Why.Message))
	}
	return v.turn(protocol.EventBroke, rec.Why)
}

// broken takes the next attempt, or comes back by itself.
func (v view) broken(now time.Time) action {
	if a, ok := v.granted(); ok {
		return a
	}
	switch rec := v.disk; {
	case rec.target().Is(v.seen.Current) && v.passed():
		return v.turn(protocol.EventApplied, why{})
	case rec.target().Is(v.seen.Current):
		return v.watch(now, v.limits.verifyWithin/brokenLooks)
	case rec.Status.From.Is(v.seen.Current) && !v.isSuspect(rec.target()):
		return v.turn(protocol.EventFellBack, rec.Why)
	}
	return v.idle(v.limits.verifyWithin / brokenLooks)
}

// brokenLooks is how often a broken node is looked at in the time that a verification may take.
const brokenLooks = 10

// resting takes the next attempt, or fetches ahead.
func (v view) resting() action {
	if a, ok := v.granted(); ok {
		return a
	}
	if r, err := v.shadow.protocol().Answer(protocol.EventStaged); err == nil && v.online {
		a := v.tell(protocol.EventStaged, v.with(r, v.disk.Why))
		if r.Staged != "" && !protocol.ParseRevision(r.Staged).Is(v.seen.Staged) {
			a.act = prepare
		}
		return a
	}
	return v.idle(0)
}

// granted answers a grant.
func (v view) granted() (action, bool) {
	r, err := v.shadow.protocol().Answer(protocol.EventCommit)
	if err != nil {
		return action{}, false
	}
	rec := record{UID: v.shadow.UID, Status: Status{Report: r}, Key: keyOf(v.shadow.UID, r.Attempt), Revert: v.shadow.Orders.Revert}
	// What a broken node runs is nothing to go back to: what it ran before the attempt that broke it still is.
	if rec.Status.From = v.seen.Current; v.disk.Status.Report.Phase == protocol.PhaseFailedBroken {
		rec.Status.From = v.disk.Status.From
	}
	a := v.tell(protocol.EventCommit, rec)
	a.act = answer
	if rec.Revert && !v.seen.CanRevert && !rec.target().Is(v.seen.Current) {
		a.refuse = why{reasonIrreversible, "there is no way back from " + quoted(v.seen.Current) + " to " + quoted(rec.target())}
	}
	return a, true
}
