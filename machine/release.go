// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// ending reports whether the present instance is to end, or already does.
func (p *pass) ending() bool {
	m := p.Machine
	return !m.Deleted.IsZero() || p.s.Release != nil || (m.Spec.Decommission && p.s.Phase != PhaseRetired)
}

// end takes an instance through its end. What must not be asked twice is stored before the first step that can't be undone.
func (p *pass) end() Decision {
	switch {
	case p.recoverable() && p.Machine.Finalizer:
		return p.recover() // its instance is still there, for all that is known
	case p.recoverable():
		return Decision{Status: p.s, Action: Action{Kind: SetFinalizer}}
	case p.s.Token == "", p.s.Phase == PhaseRetired && p.s.Release == nil:
		return p.gone()
	}
	p.begin()
	r := p.s.Release
	if p.takenBack() {
		return p.resume(r)
	}
	p.s.Phase = PhaseDeleting
	if r.Replace {
		p.s.Phase = PhaseUpdating
	}
	if d, waits := p.empty(r); waits {
		return d
	}
	return p.switchOff(r)
}

// begin fixes how it ends. A machine that is deleted while its instance is being replaced is not replaced any more.
func (p *pass) begin() {
	if p.s.Release == nil {
		p.s.Release = &Release{Mode: p.Machine.Spec.Deletion.mode(), Since: p.Now}
		if u := p.s.Update; u != nil {
			p.s.Release.Slot, p.s.Release.Loan = u.Slot, u.Loan
		}
		p.s.Update = nil
	}
	if !p.Machine.Deleted.IsZero() || p.Machine.Spec.Decommission {
		p.s.Release.Replace = false
	}
}

// takenBack means that nobody wants the end any more, and nothing is lost yet.
func (p *pass) takenBack() bool {
	m, r := p.Machine, p.s.Release
	unwanted := m.Deleted.IsZero() && !m.Spec.Decommission && !r.Replace
	reverted := r.Replace && p.s.Digest == m.Spec.Digest() && !r.Conflict
	return (unwanted || reverted) && !r.Begun
}

// resume goes back to work.
func (p *pass) resume(r *Release) Decision {
	if len(p.Nodes) > 0 && p.Nodes[0].Held {
		return Decision{Status: p.s, Action: Action{Kind: Uncordon}}
	}
	if r.Slot {
		return Decision{Status: p.s, Action: Action{Kind: FreeSlot, Attempt: r.Loan}}
	}
	p.s.Release = nil
	p.s.Phase = PhaseJoining
	p.step(StepJoining, "")
	return Decision{Status: p.s, Store: true, After: time.Second}
}

// empty is what comes before the first step that can't be undone: gates, slot, hooks, drain.
func (p *pass) empty(r *Release) (Decision, bool) {
	switch {
	case !r.Gated && p.overridden("gates"):
		r.skip(&r.Gated, "gates", "the annotation "+OverrideAnnotation)
	case !r.Gated:
		return p.ask(StepGates, p.askGates(r)), true
	}
	turns := r.Replace && !r.Conflict && !r.BackedUp && p.turns()
	if !r.Slot && !r.Begun && p.disturbs() {
		if turns && p.Busy != "" {
			return p.wait(StepSlot, p.Busy, pollInstance), true // without a slot, which the other one may need
		}
		return p.ask(StepSlot, Action{Kind: TakeSlot, Attempt: p.attempt(r.Since)}), true
	}
	if turns {
		return p.turn(r.Since), true
	}
	return p.vacate(r)
}

// vacate has the work leave: hooks, drain.
func (p *pass) vacate(r *Release) (Decision, bool) {
	if !r.Hooked {
		if d, waits := p.hooks(StepHooks, BeforeDrain, &r.Hooked); waits {
			return d, true
		}
	}
	if !r.Drained {
		return p.drain(r)
	}
	return Decision{}, false
}

// disturbs means that there is a Node on which work may run.
func (p *pass) disturbs() bool { return p.NodesKnown && len(p.Nodes) > 0 && p.Nodes[0].Ready }

// unseen means that a cache has no Node: one that has registered just now may not be in it yet.
func (p *pass) unseen() bool { return p.NodesKnown && len(p.Nodes) == 0 && !p.NodesLive }

func (p *pass) drain(r *Release) (Decision, bool) {
	limit := p.Machine.Spec.Deletion.DrainTimeout
	lost := p.s.Failure != nil && p.s.Failure.Reason == ReasonInstanceLost
	switch {
	case p.overridden("drain"):
		r.skip(&r.Drained, "drain", "the annotation "+OverrideAnnotation)
	case lost:
		r.skip(&r.Drained, "drain", "the instance is lost")
	case p.unseen():
		return p.ask(StepDraining, Action{Kind: FindNodes}), true
	case p.NodesKnown && len(p.Nodes) == 0:
		r.Drained = true
	case !p.NodesKnown && p.unreachable():
		r.skip(&r.Drained, "drain", fmt.Sprintf("the workload API hasn't answered for %v", p.nodeTimeout()))
	case !p.NodesKnown:
		return p.wait(StepDraining, "the workload API doesn't answer", p.untilUnreachable()), true
	case limit > 0 && p.s.Step.Name == StepDraining && p.Now.Sub(p.s.Step.Since) >= limit:
		r.skip(&r.Drained, "drain", fmt.Sprintf("not empty after %v: %s", limit, p.s.Step.Blocker))
	default:
		return p.ask(StepDraining, Action{Kind: Drain}), true
	}
	return Decision{}, false
}

// askGates asks them. A workload API that is away for so long that the rest of the end goes on without it holds the gates up no more either, where the disks are kept:
// what nobody has looked for can still be found on them then. Disks that are destroyed need somebody who says so.
func (p *pass) askGates(r *Release) Action {
	return Action{Kind: AskGates, Unseen: !p.NodesKnown && p.unreachable() && r.Mode == provider.Retain}
}

func (p *pass) nodeTimeout() time.Duration {
	return or(p.Machine.Spec.Deletion.NodeTimeout, DefaultNodeTimeout)
}

// unreachable: the workload API has been away so long that the end goes on without it.
func (p *pass) unreachable() bool {
	return !p.NodesUnknown.IsZero() && p.Now.Sub(p.NodesUnknown) >= p.nodeTimeout() && p.Now.Sub(p.s.Release.Since) >= p.nodeTimeout()
}

func (p *pass) untilUnreachable() time.Duration {
	since := p.s.Release.Since
	if p.NodesUnknown.After(since) {
		since = p.NodesUnknown
	}
	return max(since.Add(p.nodeTimeout()).Sub(p.Now), time.Second)
}

// hooks waits for the owners of a phase's hooks.
func (p *pass) hooks(name StepName, phase HookPhase, passed *bool) (Decision, bool) {
	r := p.s.Release
	for _, h := range p.Machine.Spec.Deletion.Hooks {
		if h.Phase != phase {
			continue
		}
		switch since := p.sinceStep(name); {
		case p.overridden("hooks"):
			r.skip(passed, "hook "+h.Name, "the annotation "+OverrideAnnotation)
		case h.Timeout > 0 && p.Now.Sub(since) >= h.Timeout:
			r.skip(passed, "hook "+h.Name, fmt.Sprintf("%s has not taken it away in %v", h.Owner, h.Timeout))
		default:
			*passed = false
			why := fmt.Sprintf("hook %q of %s", h.Name, h.Owner)
			if h.Timeout > 0 {
				return p.wait(name, why, since.Add(h.Timeout).Sub(p.Now)), true
			}
			return p.wait(name, why, 0), true
		}
	}
	*passed = true
	return Decision{}, false
}

func (p *pass) sinceStep(name StepName) time.Time {
	if p.s.Step.Name == name {
		return p.s.Step.Since
	}
	return p.Now
}

// switchOff is what can't be undone: leave, stop, remove the Node, give everything back.
func (p *pass) switchOff(r *Release) Decision {
	if !r.Left {
		if d, waits := p.leave(r); waits {
			return d
		}
	}
	if !r.Stopped && p.overridden("stopped") {
		r.skip(&r.Stopped, "stopped", "the annotation "+OverrideAnnotation)
	}
	if r.Stopped || !p.Can.Stop {
		return p.release(r)
	}
	if after, waits := p.goesOn(Stop, p.s.Token); waits {
		return p.wait(StepStopping, cmp.Or(p.why(), p.s.Step.Blocker), after)
	}
	return p.ask(StepStopping, Action{Kind: Stop, Token: p.s.Token})
}

// leave takes the machine out of the member lists of its services. That its end has begun is stored before.
func (p *pass) leave(r *Release) (Decision, bool) {
	if d, waits := p.hooks(StepLeaving, BeforeStop, &r.HooksBeforeStop); waits {
		return d, true
	}
	a := Action{Kind: Leave}
	switch {
	case !r.Begun && p.overridden("gates"):
		r.skip(&p.Agreed, "gates", "the annotation "+OverrideAnnotation)
	case !r.Begun && !p.Ungated && !p.Agreed:
		return p.ask(StepLeaving, p.askGates(r)), true // a drain may have taken hours: what was true before it need not be
	}
	switch {
	case !r.Begun:
		r.Begun = true
		p.step(StepLeaving, "")
		if p.Ungated && !p.Machine.Deleted.IsZero() && len(r.Overrides) == 0 {
			return Decision{Status: p.s, Action: a}, true // that it is deleted is stored, and there is nobody who could refuse it now
		}
		return p.store(a), true
	case p.overridden("leave"):
		r.skip(&r.Left, "leave", "the annotation "+OverrideAnnotation)
		return Decision{}, false
	}
	return p.ask(StepLeaving, a), true
}

// release removes the Node once the instance is proven to be stopped, and gives back what it held.
func (p *pass) release(r *Release) Decision {
	if r.Stopped && !r.NodeGone {
		if d, waits := p.removeNode(r); waits {
			return d
		}
	}
	after, waits := p.goesOn(Delete, p.s.Token)
	switch {
	case !r.Released && waits:
		return p.wait(StepReleasing, cmp.Or(p.why(), p.s.Step.Blocker), after)
	case !r.Released:
		return p.ask(StepReleasing, Action{Kind: Delete, Token: p.s.Token})
	case r.Slot && !r.Replace:
		return p.ask(StepReleasing, Action{Kind: FreeSlot, Attempt: r.Loan})
	case r.Replace && p.backingOff():
		return p.wait(StepReleasing, "the provider has refused the last token; another one is tried later", p.NotBefore.Sub(p.Now))
	case r.Replace:
		return p.intend()
	}
	return p.gone()
}

func (p *pass) removeNode(r *Release) (Decision, bool) {
	switch {
	case p.NodesKnown && len(p.Nodes) > 0 && p.NodeAsked:
		return p.wait(StepNode, p.s.Step.Blocker, pollInstance), true
	case p.NodesKnown && len(p.Nodes) > 0 && p.stays():
		r.skip(&r.NodeGone, "node", fmt.Sprintf("the annotation %s; Node %q is still there: %s", OverrideAnnotation, p.Nodes[0].Name, p.s.Step.Blocker))
		return p.said(), true
	case p.NodesKnown && len(p.Nodes) > 0:
		return p.ask(StepNode, Action{Kind: RemoveNode}), true
	case p.NodesKnown && p.NodesLive:
		r.NodeGone = true
	case p.overridden("node"):
		r.skip(&r.NodeGone, "node", "the annotation "+OverrideAnnotation)
		return p.said(), true
	case p.NodesKnown:
		return p.ask(StepNode, Action{Kind: FindNodes}), true
	case p.unreachable():
		r.skip(&r.NodeGone, "node", fmt.Sprintf("the workload API hasn't answered for %v: it is removed when that answers", p.nodeTimeout()))
		p.strays()
	default:
		return p.wait(StepNode, "the workload API doesn't answer", p.untilUnreachable()), true
	}
	return Decision{}, false
}

// stays means that the removal of the Node was tried in vain, and that somebody does not want to wait for it. A Node that can be removed is, whatever is not waited for.
func (p *pass) stays() bool {
	return p.overridden("node") && p.s.Step.Name == StepNode && strings.HasPrefix(p.s.Step.Blocker, "node: ")
}

// gone is the end of an end.
func (p *pass) gone() Decision {
	m := p.Machine
	if !m.Deleted.IsZero() {
		p.s.Phase = PhaseDeleting
		if d, waits := p.awaitStrays(); waits {
			return d
		}
		p.step(StepGone, "")
		if !m.Finalizer {
			return Decision{Status: p.s}
		}
		return Decision{Status: p.s, Action: Action{Kind: RemoveFinalizer}}
	}
	if p.s.Phase == PhaseRetired {
		return p.wait(StepGone, "decommissioned; delete it, or take spec.decommission back", p.nextRetained())
	}
	p.s.Phase, p.s.Release, p.s.Node, p.s.Failure = PhaseRetired, nil, nil, nil
	for i := range p.s.Retained {
		p.s.Retained[i].Back = p.s.Retained[i].Token == p.s.Token
	}
	p.s.Instance = nil // its token stays, and is used up
	p.step(StepGone, "decommissioned; delete it, or take spec.decommission back")
	return Decision{Status: p.s, Store: true, After: time.Second}
}

// skip passes a step that was not done, and says so.
func (r *Release) skip(passed *bool, what, why string) {
	*passed, r.Overrides = true, noted(r.Overrides, what+": "+why)
}

// skip is that of a change in place.
func (u *Update) skip(passed *bool, what, why string) {
	*passed, u.Overrides = true, noted(u.Overrides, what+": "+why)
}

func noted(all []string, text string) []string {
	if slices.Contains(all, text) {
		return all
	}
	return append(all, text)
}
