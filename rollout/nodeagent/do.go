// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belayproject/belay/internal/compat"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/rollout/protocol"
)

// errOtherNode means that the shadow belongs to another incarnation of the Node than the one that the agent runs on.
// Its orders are not followed, and an attempt that it is in is not this node's.
var errOtherNode = errors.New("the shadow belongs to another incarnation of the node")

// do takes a step. The next one is decided on what is seen then.
func (a *Agent) do(ctx context.Context, l look, act action) error {
	switch act.act {
	case run:
		return a.run(ctx, act.record)
	case verify:
		return a.verify(ctx, l, act.record)
	case prepare:
		return a.prepare(ctx, l, act)
	case answer:
		return a.answer(ctx, l, act)
	case begin, quick:
		if err := a.own(ctx, l.shadow); err != nil {
			return err
		}
	}
	if act.act == quick {
		a.noted(ctx, act.event, act.record)
		return a.run(ctx, act.record)
	}
	return a.tell(ctx, l, act.event, act.record)
}

// own returns nil if the shadow belongs to the Node that the agent runs on. That is asked before each order that is
// followed, and before an attempt is believed that the disk does not know: the shadow of a Node that was deleted may
// be there for a while, and its slot is free already.
func (a *Agent) own(ctx context.Context, sh Shadow) error {
	ctx, cancel := context.WithTimeout(ctx, a.o.CallTimeout)
	defer cancel()
	uid, err := a.o.NodeUID(ctx)
	if err != nil {
		return fmt.Errorf("nodeagent: asking for the UID of node %q: %w", sh.Node, err)
	}
	if uid == "" || uid != sh.UID {
		return fmt.Errorf("nodeagent: node %q has UID %q, its shadow is for %q: %w", sh.Node, uid, sh.UID, errOtherNode)
	}
	return nil
}

// tell stores a step, and forgets what was thought of the one before.
func (a *Agent) tell(ctx context.Context, l look, event protocol.Event, r record) error {
	if err := a.store(ctx, l, r); err != nil {
		return err
	}
	if event != "" {
		a.noted(ctx, event, r)
	}
	return nil
}

// noted logs a step, and forgets what was thought of the one before. That the node is about to boot is no thought of
// a step before.
func (a *Agent) noted(ctx context.Context, event protocol.Event, r record) {
	rep := r.Status.Report
	if event != protocol.EventRecall || rep.Phase != protocol.PhaseApplying {
		a.mind.note = why{}
	}
	if event != protocol.EventVerified && event != protocol.EventStaged {
		a.mind.check = check{}
	}
	klog.FromContext(ctx).Info("Rollout attempt", "event", event, "attempt", rep.Attempt, "key", r.Key, "phase", rep.Phase,
		"revision", rep.Revision, "current", r.Status.Current.String(), "reason", r.Status.Reason)
}

// answer asks whether the attempt may go on, and commits or refuses it.
func (a *Agent) answer(ctx context.Context, l look, act action) error {
	if err := a.own(ctx, l.shadow); err != nil {
		return err
	}
	r := act.record
	if act.refuse.Reason != "" {
		return a.refuse(ctx, l, r, act.refuse)
	}
	check, cancel := context.WithTimeout(ctx, a.o.CheckTimeout)
	defer cancel()
	if p, ok := a.o.Updater.(Preflighter); ok {
		err := p.Preflight(check, r.attempt())
		if declined, is := compat.AsType[*DeclinedError](err); is {
			return a.refuse(ctx, l, r, why{declined.Reason, declined.Message}.or(reasonDeclined, declined.Message))
		}
		if err != nil {
			return a.trouble(ctx, l, why{reasonPreflightFailed, err.Error()}, fmt.Errorf("nodeagent: preflight of %s: %w", r.Key, err))
		}
	}
	if d, ok := a.o.Updater.(Disrupter); ok {
		var err error
		if r.Status.Disruption, err = d.Disruption(check, l.seen.Current, r.target()); err != nil {
			return a.trouble(ctx, l, why{reasonPreflightFailed, err.Error()}, fmt.Errorf("nodeagent: asking what %s disrupts: %w", r.Key, err))
		}
	}
	return a.tell(ctx, l, protocol.EventCommit, r)
}

// refuse declines an attempt. A node that is broken can't: that would say that it is well. There the controller gets
// the reason, and has to revoke the attempt.
func (a *Agent) refuse(ctx context.Context, l look, r record, w why) error {
	rep, err := l.shadow.protocol().Answer(protocol.EventRefuse)
	if err != nil {
		return a.trouble(ctx, l, w, fmt.Errorf("nodeagent: declining %s, %s: %w", r.Key, w.Message, err))
	}
	r.Status.Report, r.Why = rep, w
	return a.tell(ctx, l, protocol.EventRefuse, l.view.tell(protocol.EventRefuse, r).record)
}

// trouble reports what is in the way of an order, once, and returns err.
func (a *Agent) trouble(ctx context.Context, l look, w why, err error) error {
	if w.Reason == l.shadow.Status.Reason || !l.online {
		return err
	}
	l.mind.note = w // this pass alone: the order may be taken back
	act := l.view.reconciled().idle(0)
	return errors.Join(err, a.store(ctx, l, act.record))
}

// prepare fetches ahead.
func (a *Agent) prepare(ctx context.Context, l look, act action) error {
	if err := a.own(ctx, l.shadow); err != nil {
		return err
	}
	r := protocol.ParseRevision(act.record.Status.Report.Staged)
	fetch, cancel := context.WithTimeout(ctx, a.o.ApplyTimeout)
	defer cancel()
	if err := a.o.Updater.Prepare(fetch, r); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return a.trouble(ctx, l, why{reasonPrepareFailed, err.Error()}, fmt.Errorf("nodeagent: preparing %q: %w", r, err))
	}
	return a.tell(ctx, l, act.event, act.record)
}

// run puts the intent, and calls Apply or Revert. That the call was ended because the agent is to end is no return:
// the next agent repeats it.
func (a *Agent) run(ctx context.Context, r record) error {
	if err := a.put(ctx, r); err != nil {
		return err
	}
	back := r.Back != ""
	attempt, call, failed := r.attempt(), a.o.Updater.Apply, reasonApplyFailed
	if back {
		attempt = r.goingBack()
	}
	if attempt.Revert {
		call, failed = a.o.Updater.Revert, reasonRevertFailed
	}
	limited, cancel := context.WithTimeout(ctx, a.o.ApplyTimeout)
	defer cancel()
	err := call(limited, attempt)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	done := ran{key: r.Key, back: back, at: time.Now()}
	switch {
	case err == nil:
	case errors.Is(err, ErrRebooting):
		done.rebooting, a.mind.note = true, why{reasonRebooting, err.Error()}
	case errors.Is(err, ErrIrreversible):
		done.why = why{reasonIrreversible, err.Error()}
	case limited.Err() != nil:
		done.why = why{reasonTimedOut, fmt.Sprintf("not done after %s: %v", a.o.ApplyTimeout, err)}
	default:
		done.why = reasonOf(err, failed)
	}
	if a.mind.ran = done; done.why.Reason != "" {
		klog.FromContext(ctx).Error(err, "Rollout attempt failed", "key", r.Key, "reason", done.why.Reason)
	}
	return nil
}

// verify makes a check, and credits it.
func (a *Agent) verify(ctx context.Context, l look, r record) error {
	asked, cancel := context.WithTimeout(ctx, a.o.CheckTimeout)
	defer cancel()
	h, err := a.o.Updater.Verify(asked, r.attempt())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	now := check{key: r.Key, boot: l.seen.BootID, at: time.Now(), verdict: h.Verdict, why: why{h.Reason, h.Message}}
	switch {
	case err != nil:
		now.verdict, now.why = NotYet, why{reasonNoAnswer, err.Error()}
	case h.Verdict == Pass:
		now.why = why{}
	case h.Verdict == Fail:
		now.why = now.why.or(reasonUnhealthy, h.Message)
	default:
		now.verdict, now.why = NotYet, now.why.or(reasonNotYet, h.Message)
	}
	last := a.mind.check
	a.mind.check = now
	if r.Status.Report.Phase != protocol.PhaseVerifying {
		return nil // it stays said why the node is broken
	}
	a.mind.note = now.why
	r.Trial = r.Trial.credit(last, now, a.o.VerifyEvery, a.o.VerifyEvery+a.o.CheckTimeout)
	return a.put(ctx, r)
}

// reasonOf is what an error says of itself, or a reason for it.
func reasonOf(err error, reason string) why {
	if r, ok := compat.AsType[interface {
		error
		Why() (reason, message string)
	}](err); ok {
		named, message := r.Why()
		return why{named, message}.or(reason, message)
	}
	return why{reason, err.Error()}
}
