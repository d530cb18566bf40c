// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

// A Snapshot is what was seen, as of one moment.
type Snapshot struct {
	Ledger protocol.Ledger
	// Nodes are all of the disruption domain, in any order.
	Nodes []Node
	// Progress is what is remembered of the rollout.
	Progress Progress
	// Gates are the verdicts on the fleet: nothing is begun unless all allow it.
	Gates []Verdict
	// OtherCaps are those of other rollouts of the domain: they bind this one too.
	OtherCaps []protocol.Cap
}

// A Node is what was seen of one node.
type Node struct {
	Name, UID string
	Labels    map[string]string
	// Created is when the Node was.
	Created time.Time
	// Shadow is the node's record; nil if it has none yet.
	Shadow *protocol.Shadow
	// Runs is the revision that the node runs, by the word of its agent: name and digest. Empty if that is not known.
	Runs RevisionRef
	// Away says why the node is unavailable though nobody of this domain has disrupted it: "not ready", "cordoned by admin". Empty if it
	// is not.
	Away string
	// Health is the verdict on the node before it is touched, and on its work after it came back.
	Health Verdict
	// Drain is how far its drain is, if it is being drained.
	Drain Drain
	// Own: the controller itself runs there. It goes last.
	Own bool
}

// A RevisionRef names a revision.
type RevisionRef struct{ Name, Digest string }

// A Verdict is the answer of a gate or a health check. The zero Verdict is Unknown, which does not allow.
type Verdict struct {
	// From names the gate.
	From string
	// Answer is [Allow], [Deny] or [Unknown].
	Answer Answer
	// Reason is one word in the form of condition reasons, Message a sentence.
	Reason, Message string
	// RetryAfter is when to ask again at the latest; zero means with the next change.
	RetryAfter time.Duration
}

// An Answer is a three-valued yes.
type Answer string

// Answers.
const (
	Unknown Answer = ""
	Allow   Answer = "Allow"
	Deny    Answer = "Deny"
)

// A Drain is what the drainer says of a node.
type Drain struct {
	// Empty: every pod that has to go is gone.
	Empty bool
	// Blocked names the pod, its budget and since when, for people; empty if nothing is in the way.
	Blocked string
}

// Progress is what is remembered of a rollout between snapshots: its status. Whoever acts on the decisions stores [Decisions].Progress
// with them.
type Progress struct {
	// Stage is the number of the stage under way; SoakSince is when its last node was done, zero before.
	Stage     int
	SoakSince time.Time
	// Nodes is what became of each node, by UID.
	Nodes map[string]NodeProgress
	// Phase is where the rollout stands.
	Phase Phase
	// Frozen says which detector has stopped it, and why; the failures up to Accepted were accepted since.
	Frozen   string
	Accepted int
	// Handled is the ID of the last request that was carried out, Promoted the stage up to which somebody has promoted it.
	Handled  string
	Promoted int
	// Outcomes are the ends of attempts in the order in which they were seen, for the detectors: one for each node.
	Outcomes []Outcome
	// Cycles are how long nodes took from their grant to their end.
	Cycles []time.Duration
}

// NodeProgress is what became of one node.
type NodeProgress struct {
	// Attempts is how often it was tried, the last of them with Attempt, of which the phase at hand was seen first at Since.
	Attempts int
	Attempt  protocol.Attempt
	State    protocol.State
	Since    time.Time
	// Admitted is when it got its slot.
	Admitted time.Time
	// Outcome is the last one, Failed says that it has counted as a failure, NotBefore is when it is tried again.
	Outcome   Outcome
	Failed    bool
	NotBefore time.Time
	// Joined: it came after the rollout had begun.
	Joined bool
}

// An Outcome is how an attempt ended.
type Outcome struct {
	Node   string
	UID    string
	Result Result
	At     time.Time
}

// A Result is the class of an outcome.
type Result string

// Results. Refused, Deferred and Undone are no failures.
const (
	Succeeded    Result = "Succeeded"
	Refused      Result = "Refused"
	Deferred     Result = "Deferred"
	Undone       Result = "Undone"
	FailedClean  Result = "FailedClean"
	FailedBroken Result = "FailedBroken"
	Suspected    Result = "Suspect"
	Lost         Result = "Lost"
)

// A Phase is where a rollout stands.
type Phase string

// Phases.
const (
	Pending   Phase = "Pending"
	Running   Phase = "Running"
	AtGate    Phase = "AtGate"
	Paused    Phase = "Paused"
	Frozen    Phase = "Frozen"
	Aborting  Phase = "Aborting"
	Aborted   Phase = "Aborted"
	Completed Phase = "Completed"
)
