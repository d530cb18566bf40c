// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

// Decisions are what to do now, and why everything else waits. The ledger is to be stored first, then the progress, and then what Nodes ask
// for is done: a crash in between costs a pass.
type Decisions struct {
	// At is the time for which it was decided.
	At time.Time
	// Nodes has one entry for each selected node, and for each slot of this rollout: first those of which something is to be
	// done, in the order in which it is to be done, then the others by stage and order.
	Nodes []Decision
	// Ledger is the ledger after all admissions, retries, releases, marks and closures, in one compare-and-swap. It is
	// the one of the snapshot if none is due. The caps were checked on it.
	Ledger protocol.Ledger
	// Caps are those of the policy as numbers, for the snapshots of other rollouts.
	Caps []protocol.Cap
	// Progress is what to remember.
	Progress Progress
	// Phase, Reason and Message say where the rollout stands, for people.
	Phase   Phase
	Reason  Reason
	Message string
	// Acknowledged: by the ledger and the shadows of the snapshot, no node of the rollout commits until it is opened again.
	Acknowledged bool
	// Counts add up to the selection.
	Counts Counts
	// Waiting counts the nodes that wait, by reason.
	Waiting map[Reason]int
	// Findings are what the [Checks] of the policy have found.
	Findings []Finding
	// Blast is the worst that a fatal revision does before the rollout stops by itself, from its beginning on: see [Bound].
	Blast Blast
	// ExpectedEnd is an estimate of when all nodes should have had their turn; zero if that cannot be said.
	ExpectedEnd time.Time
	// After is when to look again though nothing has changed; zero means never.
	After time.Duration
}

// A Decision is what to do with one node.
type Decision struct {
	Node, UID string
	// Stage and Group are the numbers of those of the policy, -1 if there is none.
	Stage, Group int32
	State        protocol.State
	// Do is the event to bring about; empty means to wait. What it changes in the ledger is in [Decisions].Ledger, with one exception:
	// for [protocol.EventGone] the API server has to be asked first whether the Node is gone.
	Do protocol.Event
	// Revision goes with a grant, and with an order to fetch ahead, as [Revision.Ref] in its String form.
	Revision *Revision
	// Revert goes with a grant.
	Revert bool
	// Cordon and Uncordon say what the node's state asks for now; both are to be kept true, not to be done once. Uncordon is about cordons of
	// rollouts only.
	Cordon, Uncordon bool
	// Force: the drain goes on past what is in its way.
	Force bool
	// Why says why this, or why nothing. Nodes of which the same is true share it.
	Why *Why
}

// Why is the reason of a decision.
type Why struct {
	Reason Reason
	// Message says it with names and numbers.
	Message string
	// After is in how long that changes by itself, zero if it does not.
	After time.Duration
}

// Counts of nodes. Every selected node is in exactly one of them, besides Selected.
type Counts struct {
	Selected int
	// Done run their revision. InFlight have a slot. Waiting have to wait for others.
	Done, InFlight, Waiting int
	// Deferred wait for themselves: they are unhealthy, away, or have refused. Failed have fallen back to what they ran before.
	Deferred, Failed int
	// Broken have a slot, and are broken or suspect. Lost are disrupted, and somebody has given their capacity up.
	Broken, Lost int
}

// A Reason says why a node waits or is touched. Besides the constants of this package it is NextInOrder, Prefetch or Requested for
// a node that is touched, and for one that waits LaterStage, Gate, Soak, WindowClosed, DoesNotFitWindow, Cap, OneAtATime, Quorum,
// TooYoung, FailingRevision, Frozen, Aborted, JoinedLater, BrokenNodesFirst or Superseded.
type Reason string

// Reasons.
const (
	ReasonNone        Reason = ""
	ReasonUpToDate    Reason = "UpToDate"
	reasonNextInOrder Reason = "NextInOrder"
	ReasonInFlight    Reason = "InFlight"
	reasonStage       Reason = "LaterStage"
	reasonGate        Reason = "Gate"
	ReasonApproval    Reason = "Approval"
	reasonSoak        Reason = "Soak"
	reasonWindow      Reason = "WindowClosed"
	reasonDoesNotFit  Reason = "DoesNotFitWindow"
	reasonCap         Reason = "Cap"
	reasonSerial      Reason = "OneAtATime"
	reasonQuorum      Reason = "Quorum"
	ReasonUnhealthy   Reason = "Unhealthy"
	ReasonAway        Reason = "Away"
	ReasonNoAgent     Reason = "NoAgent"
	reasonMinAge      Reason = "TooYoung"
	ReasonBackOff     Reason = "BackOff"
	ReasonGivenUp     Reason = "GivenUp"
	reasonFailing     Reason = "FailingRevision"
	ReasonClosed      Reason = "LedgerClosed"
	ReasonPaused      Reason = "Paused"
	reasonFrozen      Reason = "Frozen"
	reasonAborted     Reason = "Aborted"
	ReasonBound       Reason = "TooManyCouldBreak"
	ReasonCheck       Reason = "CheckFailed"
	ReasonDeadline    Reason = "DeadlinePassed"
	ReasonBlocked     Reason = "DrainBlocked"
	reasonJoined      Reason = "JoinedLater"
	ReasonOther       Reason = "OtherRollout"
	reasonRescue      Reason = "BrokenNodesFirst"
	ReasonStranded    Reason = "BrokenNodesStuck"
	ReasonLost        Reason = "Lost"
	ReasonLeaving     Reason = "NotSelected"
	reasonSuperseded  Reason = "Superseded"
	reasonRequest     Reason = "Requested"
	reasonPrefetch    Reason = "Prefetch"
)
