// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// update brings an instance to another spec, in the way that the provider plans and the policy allows.
func (p *pass) update() Decision {
	digest := p.Machine.Spec.Digest()
	u := p.s.Update
	switch {
	case u != nil && digest == p.s.Digest && (!u.Sent || u.Digest == digest):
		return p.recall() // nobody wants it any more, or it has come to its end
	case p.Skew != "" && (u == nil || !u.Sent):
		p.s.Failure = p.failure(ReasonVersionSkew, p.Skew)
		return p.standing(p.Skew)
	case p.Invalid != "" && (u == nil || !u.Sent):
		p.s.Failure = p.failure(string(provider.InvalidConfig), p.Invalid)
		return p.standing(p.Invalid)
	case u == nil, u.Digest != digest, u.Plan.Method == provider.Unsupported && !u.Sent && u.Retry != p.Machine.retry():
		return p.plan()
	}
	return p.carry(u)
}

// retry is the digest of the annotation; empty if there is none.
func (m Machine) retry() string {
	text := m.Annotations[RetryAnnotation]
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// plan finds out what a change would do.
func (p *pass) plan() Decision {
	if p.backingOff() {
		return p.wait(StepPlanned, p.why(), p.NotBefore.Sub(p.Now))
	}
	if p.Can.Plan {
		p.step(StepPlanned, "")
		return Decision{Status: p.s, Action: Action{Kind: PlanUpdate, Token: p.s.Token}}
	}
	plan := provider.Plan{Method: provider.Replace, Reason: "the provider has no updates in place"}
	if p.Can.Update {
		plan = provider.Plan{Method: provider.InPlace, Disrupts: true, Reason: "the provider has no plans"}
	}
	p.s.planned(p.Machine, plan, p.Now)
	return p.carry(p.s.Update)
}

// planned records a plan; what an update under way has reached stays.
func (s *Status) planned(m Machine, plan provider.Plan, now time.Time) {
	u := Update{Digest: m.Spec.Digest(), Plan: plan, Since: now, Retry: m.retry()}
	if s.Update != nil {
		u.Slot, u.Loan, u.Drained, u.Sent, u.Overrides = s.Update.Slot, s.Update.Loan, s.Update.Drained, s.Update.Sent, s.Update.Overrides
		if u.Sent && s.Update.Digest != u.Digest {
			s.asked(m.Spec.Desired, s.Update.Digest) // that was asked for last: what it was before has to be made again
		}
	}
	s.Update = &u
}

// carry carries out the plan.
func (p *pass) carry(u *Update) Decision {
	method, why := p.method(u)
	switch method {
	case provider.Nothing:
		p.s.asked(p.Machine.Spec.Desired, u.Digest)
		return p.recall()
	case provider.Unsupported:
		p.s.Failure = p.failure(ReasonUnsupportedChange, why)
		return p.standing(why)
	}
	if p.Machine.Spec.UpdatePolicy == ManualUpdate && !u.Sent && p.Machine.Annotations[ApproveAnnotation] != u.Digest {
		return p.standing(fmt.Sprintf("%s planned (%s); it waits for the annotation %s=%s", u.Plan.Method, u.Plan.Reason, ApproveAnnotation, u.Digest))
	}
	if method == provider.Replace {
		p.s.Release = &Release{Replace: true, Mode: p.Machine.Spec.Deletion.mode(), Since: p.Now, Slot: u.Slot, Loan: u.Loan}
		p.s.Update = nil
		return p.end()
	}
	return p.inPlace(u)
}

// standing waits with a change that can't be made now, and looks after the Node as if there were none.
func (p *pass) standing(why string) Decision {
	if u := p.s.Update; u != nil && (u.Slot || u.Drained || u.Sent) {
		return p.wait(StepPlanned, why, pollSlow) // half-way in another one
	}
	d := p.node()
	if d.Action.Kind == None && d.Status.Step.Name == StepReady && d.Status.Step.Blocker == "" {
		d.Status.Step.Blocker = why
	}
	if d.After == 0 || d.After > pollSlow {
		d.After = pollSlow
	}
	return d
}

// replaced is what is left of a replacement: the slot, until the new instance works.
func (u *Update) replaced() bool { return u.Done && u.Plan.Method == provider.Replace }

// method is what the plan says, within the policy.
func (p *pass) method(u *Update) (provider.Method, string) {
	m := u.Plan.Method
	switch policy := p.Machine.Spec.UpdatePolicy; {
	case u.Sent && m == provider.Nothing:
		return provider.InPlace, "" // the provider may be half-way in another change
	case policy == ReplaceOnly && m == provider.InPlace:
		return provider.Replace, ""
	case m == provider.InPlace && !p.Can.Update:
		return provider.Unsupported, "the provider plans to update in place, and has no Update"
	case policy == InPlaceOnly && m == provider.Replace:
		return provider.Unsupported, fmt.Sprintf("the change needs a replacement (%s), which spec.updatePolicy InPlaceOnly refuses", u.Plan.Reason)
	case m == provider.Unsupported:
		return m, "the provider can't make the change: " + u.Plan.Reason
	case m != provider.InPlace && m != provider.Replace && m != provider.Nothing:
		return provider.Unsupported, fmt.Sprintf("the provider has planned %q, which is none of InPlace, Replace, Unsupported, Nothing", m)
	}
	return m, ""
}

// inPlace: slot, drain, update, and what the Node then shows.
func (p *pass) inPlace(u *Update) Decision {
	p.s.Phase = PhaseUpdating
	switch {
	case !u.Slot && !u.BackedUp && !u.Sent && p.turns() && p.Busy != "":
		return p.wait(StepPlanned, p.Busy, pollInstance) // without a slot, which the other one may need
	case !u.Slot:
		return p.ask(StepPlanned, Action{Kind: TakeSlot, Attempt: p.attempt(u.Since)})
	case p.turns() && !u.BackedUp && !u.Sent:
		return p.turn(u.Since)
	case u.Plan.Disrupts && !u.Drained && !u.Sent:
		return p.drainForUpdate(u)
	case !u.Done:
		return p.send(u)
	}
	return p.verify(u)
}

// drainForUpdate empties the Node before a change in place, as long as an end would: by the same timeout, and the same annotation.
func (p *pass) drainForUpdate(u *Update) Decision {
	limit := p.Machine.Spec.Deletion.DrainTimeout
	switch {
	case p.overridden("drain"):
		u.skip(&u.Drained, "drain", "the annotation "+OverrideAnnotation)
	case p.unseen():
		return p.ask(StepDraining, Action{Kind: FindNodes})
	case len(p.Nodes) == 0 && p.NodesKnown:
		u.Drained = true
	case !p.NodesKnown:
		return p.wait(StepDraining, "the workload API doesn't answer", pollSlow)
	case limit > 0 && p.s.Step.Name == StepDraining && p.Now.Sub(p.s.Step.Since) >= limit:
		u.skip(&u.Drained, "drain", fmt.Sprintf("not empty after %v: %s", limit, p.s.Step.Blocker))
	default:
		return p.ask(StepDraining, Action{Kind: Drain})
	}
	return p.send(u)
}

// send asks the provider, after it is stored that it was.
func (p *pass) send(u *Update) Decision {
	a := Action{Kind: UpdateInstance, Token: p.s.Token}
	if !u.Sent {
		u.Sent = true
		if p.NodesKnown && len(p.Nodes) == 1 {
			u.Before = p.Nodes[0].host()
		}
		p.step(StepUpdating, "")
		return p.store(a)
	}
	if f, over := p.timedOut(StepUpdating, or(p.Timeouts.Update, defaultUpdate), ReasonUpdateTimeout); over {
		p.s.Failure, p.s.Phase = f, PhaseFailed
	}
	if after, waits := p.goesOn(a.Kind, a.Token); waits {
		if left := p.left(StepUpdating, or(p.Timeouts.Update, defaultUpdate)); left > 0 {
			after = min(after, left)
		}
		return p.wait(StepUpdating, cmp.Or(p.why(), p.s.Step.Blocker), after)
	}
	p.step(StepUpdating, p.s.Step.Blocker)
	return Decision{Status: p.s, Action: a}
}

// recall ends an update: the node is given back before the slot is, and the slot before the update is forgotten.
func (p *pass) recall() Decision {
	u := p.s.Update
	if len(p.Nodes) > 0 && p.Nodes[0].Held {
		return Decision{Status: p.s, Action: Action{Kind: Uncordon}}
	}
	if u != nil && u.Slot {
		return Decision{Status: p.s, Action: Action{Kind: FreeSlot, Attempt: u.Loan}}
	}
	p.s.Update = nil
	p.s.Phase = PhaseRunning
	if p.step(StepReady, ""); p.s.Node == nil {
		p.s.Phase = PhaseJoining
		p.step(StepJoining, "")
	}
	return Decision{Status: p.s, Store: true, After: time.Second}
}

// ask has something asked that may be blocked; the step shows by what.
func (p *pass) ask(name StepName, a Action) Decision {
	blocker := ""
	if p.s.Step.Name == name {
		blocker = p.s.Step.Blocker
	}
	p.step(name, blocker)
	return Decision{Status: p.s, Action: a}
}
