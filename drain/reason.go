// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

// A Reason is why a pod, a node or a set is where it is. Reasons are stable words for programs; messages are for people. The
// empty Reason stands with pods that can leave now. Besides the constants of this package a Reason is one of
//
//   - of pods that are not waited for: MirrorPod, DaemonSetPod, Terminal, ToleratesCordon, Bounced, SkippedByRule
//   - of pods that are waited for: WaitingForCompletion, WaitingForHook, OperatorAtWork, NamespaceTerminating
//   - of pods that block: FinalizersRemain, NodeUnreachable, StuckTerminating, MultipleBudgets, EvictionRejected, NowhereToGo,
//     LastReplica, QuorumMember, UnhealthyProtected, BlockedByRule
//   - of nodes and sets: PodUnhealthy, DataLoss, DeadlinePassed, SettleWindow, VolumeAttached, LeaseNotRenewed, HoldExpired,
//     HoldAbandoned, Soaking, WaitingForSlot, WaitingForGroup, SetStopped, MarkUnreadable, WriteConflict
type Reason string

// Reasons of pods that leave or stay.
const (
	// reasonNone stands with pods that can leave now.
	reasonNone Reason = ""

	// Skipped: they are not waited for.

	reasonMirrorPod       Reason = "MirrorPod"       // a static pod: only the kubelet can stop it
	reasonDaemonSetPod    Reason = "DaemonSetPod"    // would be back at once
	reasonTerminal        Reason = "Terminal"        // has succeeded or failed
	reasonToleratesCordon Reason = "ToleratesCordon" // would be scheduled here again
	reasonBounced         Reason = "Bounced"         // its owner's pods came back again and again: those made after the one before was evicted
	reasonSkippedByRule   Reason = "SkippedByRule"   // a rule or its label says so

	// Waiting: they leave by themselves, or when something else has happened.

	Terminating                Reason = "Terminating"          // has been asked to leave and is within its grace period
	reasonWaitingForCompletion Reason = "WaitingForCompletion" // a rule lets it finish
	reasonWaitingForHook       Reason = "WaitingForHook"       // a responder has been asked
	WaitingForOrder            Reason = "WaitingForOrder"      // an earlier tier is still there
	WaitingForRate             Reason = "WaitingForRate"       // the process sends no more at the moment
	BudgetExhausted            Reason = "BudgetExhausted"      // its budget allows none at the moment
	BudgetStale                Reason = "BudgetStale"          // its budget's status is older than its spec
	BudgetContended            Reason = "BudgetContended"      // the server could not update the budget in time
	reasonNamespaceTerminating Reason = "NamespaceTerminating" // goes with its namespace
	NoAnswer                   Reason = "NoAnswer"             // the server failed, or its answer was lost: asked again later
	ServerOverloaded           Reason = "ServerOverloaded"     // the server asked for less
	WindowClosed               Reason = "WindowClosed"         // no window is open
	reasonOperatorAtWork       Reason = "OperatorAtWork"       // refused, and an operator seems to act on that

	// Blocked: somebody has to do something, or an escalation step comes.

	reasonFinalizersRemain   Reason = "FinalizersRemain"   // past its grace period, and finalizers hold it
	reasonNodeUnreachable    Reason = "NodeUnreachable"    // past its grace period, and the kubelet does not answer
	reasonStuckTerminating   Reason = "StuckTerminating"   // past its grace period, with neither of these causes
	BudgetNeverAllows        Reason = "BudgetNeverAllows"  // its budget allows none even with every pod ready
	reasonBlockedByRule      Reason = "BlockedByRule"      // a rule or its label keeps it
	reasonMultipleBudgets    Reason = "MultipleBudgets"    // the server refuses a pod under two budgets
	AdmissionDenied          Reason = "AdmissionDenied"    // an admission webhook or policy refused
	EvictionForbidden        Reason = "EvictionForbidden"  // the right to evict is missing
	reasonEvictionRejected   Reason = "EvictionRejected"   // the server refused for a reason that has no word here
	Unmanaged                Reason = "Unmanaged"          // nothing would create it again
	LocalStorage             Reason = "LocalStorage"       // its data would be lost
	reasonNowhereToGo        Reason = "NowhereToGo"        // no other node takes it
	reasonLastReplica        Reason = "LastReplica"        // the only replica on a volume that does not leave the node
	reasonQuorumMember       Reason = "QuorumMember"       // a member of a quorum, and the node does not come back
	reasonUnhealthyProtected Reason = "UnhealthyProtected" // not ready, and its budget protects it until AlwaysAllow or a healthy app
	InvalidBehavior          Reason = "InvalidBehavior"    // its label or annotation says something unknown
)

// Reasons of nodes and sets.
const (
	NodeNotFound          Reason = "NodeNotFound"      // no Node of that name
	NodeReplaced          Reason = "NodeReplaced"      // a Node of that name with another UID
	Superseded            Reason = "Superseded"        // another process of the holder has the node, or released it
	HeldByOtherRun        Reason = "HeldByOtherRun"    // another run of the holder has not ended, see Request.Run
	UncordonedByOther     Reason = "UncordonedByOther" // somebody has uncordoned the node
	reasonPodUnhealthy    Reason = "PodUnhealthy"      // put off: a pod is not ready
	reasonDataLoss        Reason = "DataLoss"          // stopped: the removal would lose data
	reasonDeadlinePassed  Reason = "DeadlinePassed"    // the request's deadline is over
	reasonSettleWindow    Reason = "SettleWindow"      // empty, and watched for latecomers
	reasonVolumeAttached  Reason = "VolumeAttached"    // empty, and volumes are still attached
	reasonLeaseNotRenewed Reason = "LeaseNotRenewed"   // a hold that does not protect the node yet, or not any more
	reasonHoldExpired     Reason = "HoldExpired"       // the hold is over, the Lease is no longer renewed
	reasonHoldAbandoned   Reason = "HoldAbandoned"     // the heartbeat that the hold depends on has stopped
	reasonSoaking         Reason = "Soaking"           // released, and watched
	Frozen                Reason = "Frozen"            // a returned node went bad: nothing starts until Resume
	reasonWaitingForSlot  Reason = "WaitingForSlot"    // as many nodes as allowed are draining
	reasonWaitingForGroup Reason = "WaitingForGroup"   // an earlier group is not done
	reasonSetStopped      Reason = "SetStopped"        // a node of the set has failed, and SkipFailed is not set
	reasonMarkUnreadable  Reason = "MarkUnreadable"    // the mark on the Node is not what a drain has written
	reasonWriteConflict   Reason = "WriteConflict"     // the Node changed meanwhile; the next pass reads it again
)
