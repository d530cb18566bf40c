// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// An Event is something that a controller, an agent or a person does, or that happens to a node. docs/rollout-protocol.md says what
// each means where.
type Event string

// Events of the agent. What it does itself it stores in its shadow by compare-and-swap, before which it has put it on its own disk.
const (
	// EventCommit: the agent takes the granted attempt. From now on its node may be disrupted.
	EventCommit Event = "Commit"
	// EventRefuse: the agent declines the granted attempt.
	EventRefuse Event = "Refuse"
	// EventUndone: the agent has given the attempt up, as ordered.
	EventUndone Event = "Undone"
	// EventApply: the agent's intent is on its disk; it begins. An agent may leave out to report that, and report what came of it.
	EventApply Event = "Apply"
	// EventApplied: the node runs the revision of the attempt.
	EventApplied Event = "Applied"
	// EventFellBack: the node runs what it ran before, and well.
	EventFellBack Event = "FellBack"
	// EventBroke: the node runs neither well.
	EventBroke Event = "Broke"
	// EventVerified: all checks have passed for as long as they have to.
	EventVerified Event = "Verified"
	// EventStaged: the agent has fetched what it was told to fetch ahead.
	EventStaged Event = "Staged"
	// EventRecall: the agent says from its own disk what it has done, to a shadow that does not know.
	EventRecall Event = "Recall"
)

// Answer is what the agent reports next, after an event of its own. The shadow is the version that the report is written on, and
// what it says of this agent must be up to date: see [Recall].
func (sh Shadow) Answer(event Event) (Report, error) {
	r := sh.Report
	if !r.Known {
		return r, refuse(event, ruleKnown, "the shadow of node %q is a new one: the agent has to say first what it did before", sh.Node)
	}
	switch event {
	case EventCommit, EventRefuse:
		return sh.take(event)
	case EventUndone, EventApply:
		return sh.heed(event)
	case EventStaged:
		if sh.Orders.Stage == r.Staged {
			return r, refuse(event, ruleOnce, "node %q has staged %q", sh.Node, r.Staged)
		}
		r.Staged = sh.Orders.Stage
		return r, nil
	case EventApplied, EventFellBack, EventBroke:
		if r.Phase == PhaseCommitted { // the agent has begun, and its disk alone knows
			begun, err := sh.heed(event)
			if err != nil {
				return r, err
			}
			r = begun
		}
	}
	for _, t := range reports() {
		if t.event == event && t.from == r.Phase {
			r.Phase = t.to
			return r, nil
		}
	}
	return r, refuse(event, rulePhase, "node %q is %q in attempt %d", sh.Node, r.Phase, r.Attempt)
}

// take answers a grant.
func (sh Shadow) take(event Event) (Report, error) {
	r, o := sh.Report, sh.Orders
	switch {
	case o.Grant <= r.Attempt:
		return r, refuse(event, ruleGrows, "node %q has answered attempt %d, and was granted %d", sh.Node, r.Attempt, o.Grant)
	case o.Grant <= o.Revoked:
		return r, refuse(event, ruleRevoked, "attempt %d of node %q is revoked, up to %d", o.Grant, sh.Node, o.Revoked)
	case !r.Phase.AtRest() && r.Phase != PhaseFailedBroken:
		return r, refuse(event, ruleEnded, "node %q is %s in attempt %d", sh.Node, r.Phase, r.Attempt)
	case event == EventRefuse && r.Phase == PhaseFailedBroken:
		return r, refuse(event, ruleAtRest, "node %q is broken: to refuse attempt %d would report it as untouched", sh.Node, o.Grant)
	}
	next := Report{Staged: r.Staged, Attempt: o.Grant, Phase: PhaseCommitted, Revision: o.Revision, Broken: r.Phase == PhaseFailedBroken, Known: true}
	if event == EventRefuse {
		next.Phase = PhaseRefused
	}
	return next, nil
}

// heed follows the controller's word on a committed attempt.
func (sh Shadow) heed(event Event) (Report, error) {
	r, o := sh.Report, sh.Orders
	to, ordered := PhaseApplying, o.Proceed >= r.Attempt && o.Undo < r.Attempt
	if event == EventUndone {
		to, ordered = r.givenUp(), o.Undo >= r.Attempt
	}
	switch {
	case r.Phase != PhaseCommitted:
		return r, refuse(event, ruleCommitted, "node %q is %q in attempt %d, want Committed", sh.Node, r.Phase, r.Attempt)
	case !ordered:
		return r, refuse(event, ruleOrdered, "attempt %d of node %q was told to proceed up to %d, and to be undone up to %d", r.Attempt, sh.Node, o.Proceed, o.Undo)
	}
	r.Phase = to
	return r, nil
}

// givenUp is the phase of a committed attempt that is given up: the node is as it was before.
func (r Report) givenUp() Phase {
	if r.Broken {
		return PhaseFailedBroken
	}
	return PhaseUndone
}

// A report is one step of an agent that nobody has to order.
type report struct {
	event    Event
	from, to Phase
}

func reports() []report {
	return []report{
		{EventApplied, PhaseApplying, PhaseVerifying},
		{EventFellBack, PhaseApplying, PhaseFailedClean},
		{EventFellBack, PhaseVerifying, PhaseFailedClean},
		{EventBroke, PhaseApplying, PhaseFailedBroken},
		{EventBroke, PhaseVerifying, PhaseFailedBroken},
		{EventVerified, PhaseVerifying, PhaseDone},
		// A broken node may come back by itself, or by a hand.
		{EventApplied, PhaseFailedBroken, PhaseVerifying},
		{EventFellBack, PhaseFailedBroken, PhaseFailedClean},
	}
}

// Recall compares what the shadow says of this agent with what is on the agent's own disk, and returns the report that the agent has to
// write before anything else; changed is false if there is nothing to say. disk is the last report that the agent has put there, before it tried
// to store it in a shadow.
//
// A shadow that knows is behind the disk when the agent died between the two: what the disk says of the same attempt has happened. An attempt
// that is on the disk alone was never committed, and is forgotten. A shadow that does not know is a new one: the disk is all that is left. A
// committed attempt that was not begun is given up then, as the new shadow revokes it.
func Recall(sh Shadow, disk Report) (r Report, changed bool) {
	r = sh.Report
	if !r.Known {
		disk.Known = true
		if disk.Phase == PhaseCommitted {
			disk.Phase = disk.givenUp()
		}
		return disk, true
	}
	if disk.Attempt == r.Attempt && disk.Phase != r.Phase && ahead(disk.Phase, r.Phase) {
		r.Phase = disk.Phase
		return r, true
	}
	return r, false
}

// ahead reports whether an attempt can come from one phase to another one.
func ahead(later, earlier Phase) bool {
	switch earlier {
	case PhaseCommitted:
		return later != "" && later != PhaseRefused
	case PhaseApplying, PhaseVerifying, PhaseFailedBroken:
		return later == PhaseVerifying || later == PhaseDone || later == PhaseFailedClean || later == PhaseFailedBroken
	}
	return false
}
