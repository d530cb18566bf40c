// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

// A Snapshot is what was seen, as of one moment.
type Snapshot struct {
	// Ledger is the one that the decided one is to replace.
	Ledger protocol.Ledger
	// Nodes are all of the disruption domain, in any order. Names and UIDs are unique.
	Nodes []Node
	// Progress is what is remembered of the rollout.
	Progress Progress
	// Gates are the verdicts on the fleet: nothing is begun unless all allow it, but for those that are [Verdict].ForStages.
	Gates []Verdict
	// OtherCaps are those of other rollouts of the domain, as [Decisions].Caps gives them: they bind this one too.
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
	// Runs is the revision that the node runs, by the word of its agent: name and digest. Empty if that is not known. It is of the same moment as Shadow: one that
	// says Done with the target, and a node that runs something else, are a node that has fallen back.
	Runs protocol.Revision
	// Irreversible: there is no way back from what it runs, by the word of its agent.
	Irreversible bool
	// Away says why the node is unavailable, other than by a cordon of a rollout: "not ready", "cordoned by admin". Empty if it is not.
	Away string
	// Health is the verdict on the node before it is touched, and on its work after it came back.
	Health Verdict
	// Drain is how far its drain is, if it is being drained.
	Drain Drain
	// Own: the controller itself runs there. It goes last.
	Own bool
}

// A Verdict is the answer of a gate or a health check. The zero Verdict is Unknown, which does not allow.
type Verdict struct {
	// From names the gate.
	From string
	// ForStages: the gate is one of stages. It holds up those that name it when they are over, and nothing else: see [Stage].Gates.
	ForStages bool
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
// with them. The maps and slices of one Progress may be those of the one before: they are never changed, only replaced.
type Progress struct {
	// Targets are the revisions that it is about: the policy's, then those of the groups that have their own. Other ones supersede them, and
	// the rollout begins anew.
	Targets []protocol.Revision
	// Members are the UIDs of the nodes that were selected when it began, in order. Who is not among them has joined.
	Members []string
	// Stages are the names of the stages to which the numbers here belong: numbers change with the stages of the policy.
	Stages []string
	// Stage is the number of the stage under way. StageFrom is how many outcomes there were when it began, SoakSince when its last node was
	// done, zero before.
	Stage, StageFrom int
	SoakSince        time.Time
	// Nodes is what is to be remembered of nodes, by UID: those in flight, and those that have failed or were put off.
	Nodes map[string]NodeProgress
	// Phase is where the rollout stands.
	Phase Phase
	// Frozen says what has stopped it, and why; the failures up to Accepted were accepted since.
	Frozen   string
	Accepted int
	// Rescue: the nodes that a revision before has broken get this one first, and no other node does before one of them has recovered.
	Rescue bool
	// Handled is the ID of the last request that was looked at, Refused why it was not carried out. Promoted is up to which stage somebody
	// has promoted it.
	Handled, Refused string
	Promoted         int
	// Stopped and FrozenBy are the closures of the ledger by a pause or abort, and by a freeze, that are in force. Lifted are those before.
	Stopped, FrozenBy string
	Lifted            []string
	// Outcomes are the ends of attempts in the order in which they were seen, for the detectors: of each node its first failure, or its success if it has none.
	// Of nodes that are gone only the newest ones are kept, and the failures until all stages were passed.
	Outcomes []Outcome
	// Cycles are how long the last nodes took from their slot to their end.
	Cycles []time.Duration
}

// NodeProgress is what is remembered of one node.
type NodeProgress struct {
	Node string
	// Attempt is the last one, State where it was seen, first at Since. Admitted is when the node got its slot.
	Attempt         protocol.Attempt
	State           protocol.State
	Since, Admitted time.Time
	// Stage is the stage in which it was begun, Critical says that it may not fail.
	Stage    int
	Critical bool
	// Result is how the attempt ended; empty before.
	Result Result
	// Attempts is how often the revision has failed here, falls back after a success among them; Deferrals how often it was put off. NotBefore is when it is
	// tried again.
	Attempts, Deferrals int
	NotBefore           time.Time
	// Failed says that the node has counted as a failure, Accepted that somebody has accepted that, Recovered that it got the revision later.
	Failed, Accepted, Recovered bool
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

// Results. Refused, Deferred and Undone are no failures, and are not among the outcomes that detectors see.
const (
	Succeeded    Result = "Succeeded"
	Refused      Result = "Refused"
	Deferred     Result = "Deferred"
	Undone       Result = "Undone"
	FailedClean  Result = "FailedClean"
	FailedBroken Result = "FailedBroken"
	Suspected    Result = "Suspect"
	Lost         Result = "Lost"
	// FellBack is that of a node which does not run the revision any more after its success.
	FellBack Result = "FellBack"
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
