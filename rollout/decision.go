// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

// Decisions are what to do now, and why everything else waits.
type Decisions struct {
	// Nodes has one entry for each selected node, and for each that has a slot of this rollout: first those of which something is to be
	// done, in the order in which it is to be done, then the others by stage, group and order.
	Nodes []Decision
	// Ledger is the ledger after all admissions, retries, releases, marks and closures of Nodes and Closures, in one compare-and-swap. It is
	// the one of the snapshot if none is due. The caps were checked on it.
	Ledger protocol.Ledger
	// Progress is what to remember; to be stored before any order is given.
	Progress Progress
	// Phase, Reason and Message say where the rollout stands, for people.
	Phase   Phase
	Reason  Reason
	Message string
	// Counts add up to the selection.
	Counts Counts
	// Waiting counts the nodes that wait, by reason.
	Waiting map[Reason]int
	// After is when to look again though nothing has changed; zero means never.
	After time.Duration
}

// A Decision is what to do with one node.
type Decision struct {
	Node, UID string
	Stage     string
	Group     string
	State     protocol.State
	// Do is the event to bring about; empty means to wait.
	Do protocol.Event
	// Revision and Revert go with a grant.
	Revision RevisionRef
	Revert   bool
	// Cordon and Uncordon say what the node's class asks for now; both are to be kept true, not to be done once.
	Cordon, Uncordon bool
	// Reason says why this, or why nothing; Message says it with names and numbers.
	Reason  Reason
	Message string
	// At is when that changes by itself, zero if it does not.
	At time.Time
}

// Counts of nodes. Every selected node is in exactly one of them.
type Counts struct {
	Selected, Done, InFlight, Waiting, Deferred, Failed, Broken, Lost int
}

// A Reason says why a node waits or is touched.
type Reason string

// Reasons.
const (
	ReasonNone        Reason = ""
	ReasonUpToDate    Reason = "UpToDate"
	ReasonNextInOrder Reason = "NextInOrder"
	ReasonInFlight    Reason = "InFlight"
	ReasonStage       Reason = "LaterStage"
	ReasonGate        Reason = "Gate"
	ReasonApproval    Reason = "Approval"
	ReasonSoak        Reason = "Soak"
	ReasonWindow      Reason = "WindowClosed"
	ReasonDoesNotFit  Reason = "DoesNotFitWindow"
	ReasonCap         Reason = "Cap"
	ReasonSerial      Reason = "OneAtATime"
	ReasonQuorum      Reason = "Quorum"
	ReasonUnhealthy   Reason = "Unhealthy"
	ReasonAway        Reason = "Away"
	ReasonNoAgent     Reason = "NoAgent"
	ReasonMinAge      Reason = "TooYoung"
	ReasonBackOff     Reason = "BackOff"
	ReasonGivenUp     Reason = "GivenUp"
	ReasonFailing     Reason = "FailingRevision"
	ReasonClosed      Reason = "LedgerClosed"
	ReasonPaused      Reason = "Paused"
	ReasonFrozen      Reason = "Frozen"
	ReasonAborted     Reason = "Aborted"
	ReasonBound       Reason = "TooManyCouldBreak"
	ReasonDeadline    Reason = "DeadlinePassed"
	ReasonBlocked     Reason = "DrainBlocked"
	ReasonJoined      Reason = "JoinedLater"
)
