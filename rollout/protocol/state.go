// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A State is where a node stands. It is derived from its slot and its shadow, and stored nowhere.
type State string

// States of a node.
const (
	// Unknown: the shadow is new, and the agent has not written to it.
	Unknown State = "Unknown"
	// Resting: the node has no slot, and is not disrupted.
	Resting State = "Resting"
	// Staged is Resting, and the agent has fetched the next revision.
	Staged State = "Staged"
	// Admitted: the node has a slot, and its agent does not know yet.
	Admitted State = "Admitted"
	// Granted: the agent may commit.
	Granted State = "Granted"
	// Revoked: the agent may not commit any more, and has not.
	Revoked State = "Revoked"
	// Refused: the agent has declined; nothing was touched.
	Refused State = "Refused"
	// Committed: the node may be disrupted. If its class asks for that, it is cordoned and drained.
	Committed State = "Committed"
	// Undoing: the agent is to give the attempt up.
	Undoing State = "Undoing"
	// Undone: it has. The node is uncordoned.
	Undone State = "Undone"
	// Proceeding: the node is empty; the agent is to begin.
	Proceeding State = "Proceeding"
	// Applying: the node is being changed.
	Applying State = "Applying"
	// Verifying: the node runs the revision and is watched. It is uncordoned, so that work comes back.
	Verifying State = "Verifying"
	// Done: the revision is on the node, and works.
	Done State = "Done"
	// FailedClean: the node runs what it ran before, and well.
	FailedClean State = "FailedClean"
	// FailedBroken: the node runs neither well.
	FailedBroken State = "FailedBroken"
	// Retrying: the node is disrupted by an attempt before, and has been admitted for the next one.
	Retrying State = "Retrying"
	// Lost: the node is disrupted, and has no slot: somebody has given its capacity up.
	Lost State = "Lost"
	// Gone: there is no Node of that UID any more. Nothing follows.
	Gone State = "Gone"
)

// States are all of them, in the order in which a node passes through them.
func States() []State {
	return []State{
		Unknown, Resting, Staged, Admitted, Granted, Revoked, Refused, Committed, Undoing, Undone, Proceeding, Applying, Verifying,
		Done, FailedClean, FailedBroken, Retrying, Lost, Gone,
	}
}

// StateOf derives the state of the node that the shadow belongs to.
func StateOf(l Ledger, sh Shadow) State {
	slot, r := l.Slot(sh.UID), sh.Report
	switch {
	case !r.Known:
		return Unknown
	case slot == nil && !r.Phase.AtRest():
		return Lost
	case slot == nil && r.Staged != "" && r.Staged == sh.Orders.Stage:
		return Staged
	case slot == nil:
		return Resting
	case r.Attempt < slot.Attempt && !r.Phase.AtRest():
		return Retrying
	case r.Attempt < slot.Attempt:
		return before(slot.Attempt, sh.Orders)
	}
	return during(sh)
}

// before is the state of an attempt that the agent has not answered.
func before(k Attempt, o Orders) State {
	switch {
	case o.Revoked >= k:
		return Revoked
	case o.Grant >= k:
		return Granted
	}
	return Admitted
}

// during is the state of an attempt that the agent has answered.
func during(sh Shadow) State {
	k, o := sh.Report.Attempt, sh.Orders
	switch sh.Report.Phase {
	case PhaseCommitted:
		if o.Undo >= k {
			return Undoing
		}
		if o.Proceed >= k {
			return Proceeding
		}
		return Committed
	case "":
		return Resting
	}
	return State(sh.Report.Phase)
}
