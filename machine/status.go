// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// Status is what is known of a machine.
type Status struct {
	Phase Phase
	Step  Step
	// Incarnation counts the instances that this machine has had. Token is that of the present one. Both are stored before the call that makes
	// the instance.
	Incarnation int64
	Token       string
	// Digest is that of what the instance was asked to be, last. ProviderDigest is the digest of the same without the Node's settings, by which an edit of these
	// alone is told; empty where it is not known, as in a status of an earlier version.
	Digest, ProviderDigest string
	// Instance is what the provider said last that was worth remembering; nil before there was one.
	Instance *provider.Instance
	// Node is that of the present instance; nil before it has joined.
	Node *NodeRef
	// Versions are what the Node reports.
	Versions provider.Versions
	// Update is the change under way; nil if there is none.
	Update *Update
	// Release is the end under way, of the machine or of its present instance; nil if there is none.
	Release *Release
	// Retained are instances whose disks were kept.
	Retained []Retained
	// Strays are Nodes of instances that have ended, which the workload API could not be asked to remove yet.
	Strays []Stray
	// Failure is why it doesn't go on; nil if it does.
	Failure *Failure
	// Observed is the generation that the rest speaks of.
	Observed int64
	// Updated is when it changed last.
	Updated time.Time
}

// A Phase is where a machine stands, in one word for people and for the cluster-autoscaler.
type Phase string

// Phases.
const (
	PhasePending      Phase = "Pending"
	PhaseProvisioning Phase = "Provisioning"
	PhaseJoining      Phase = "Joining"
	PhaseRunning      Phase = "Running"
	PhaseUpdating     Phase = "Updating"
	PhaseDeleting     Phase = "Deleting"
	PhaseRetired      Phase = "Retired" // decommissioned, and not deleted
	PhaseFailed       Phase = "Failed"  // somebody or its owner has to do something; it goes on by itself where that can help
)

// A Step is what a machine is at.
type Step struct {
	Name  StepName
	Since time.Time
	// Blocker is what it waits for, in words; empty if it goes on by itself.
	Blocker string
}

// A StepName names a step in the life of a machine.
type StepName string

// Steps, in their order.
const (
	StepPending   StepName = "Pending"
	StepCreating  StepName = "Creating" // the intent is stored
	StepJoining   StepName = "Joining"  // the instance runs
	StepStarting  StepName = "Starting" // the Node is there; its role's checks have not passed
	StepReady     StepName = "Ready"
	StepPlanned   StepName = "Planned"   // a change is planned and waits
	StepTurn      StepName = "Turn"      // of the control plane, whose machines are changed one by one
	StepBackup    StepName = "BackingUp" // it has claimed its turn
	StepUpdating  StepName = "Updating"
	StepVerifying StepName = "Verifying"
	StepGates     StepName = "Gates" // the end has begun
	StepSlot      StepName = "Slot"
	StepHooks     StepName = "Hooks"
	StepDraining  StepName = "Draining"
	StepLeaving   StepName = "Leaving" // hooks before the stop
	StepStopping  StepName = "Stopping"
	StepReleasing StepName = "Releasing"
	StepNode      StepName = "RemovingNode"
	StepGone      StepName = "Gone"
)

// A NodeRef is one Node.
type NodeRef struct{ Name, UID string }

// An Update is a change of an instance.
type Update struct {
	// Digest is that of what the instance is to be.
	Digest string
	Plan   provider.Plan
	Since  time.Time
	// Slot means that the disruption budget was charged. Drained that the node was emptied. Sent that the provider was asked.
	Slot, Drained, Sent bool
	// BackedUp means that what has to come before it was done.
	BackedUp bool
	// Loan names what was taken of the budget.
	Loan string
	// Done means that the provider has said so; the Node has not shown it yet.
	Done bool
	// Before is what the Node reported of its host when the provider was asked, as a digest; empty if that is not known. Heard is the report of the kubelet that
	// the workload cluster had when the provider was done; empty if it was not asked for. A Node that still says both is no proof of the update.
	Before, Heard string
	// Retry is the digest of [RetryAnnotation] when it was planned: a plan that nothing can be done by is asked for again when it changes.
	Retry string
	// Overrides are the steps that were passed without being done, with the reason, as in [Release].
	Overrides []string
}

// A Release is the end of an instance. Each step is passed once.
type Release struct {
	// Replace means that the machine goes on with another instance.
	Replace bool
	// Mode is fixed when it begins.
	Mode  provider.Mode
	Since time.Time
	// What is behind it.
	Gated, Slot, Hooked, Drained, HooksBeforeStop, Left, Stopped, Released, NodeGone bool
	// Begun means that the first step that can't be undone may have been taken: from here it goes to its end.
	Begun bool
	// BackedUp means that what has to come before a replacement was done.
	BackedUp bool
	// Loan names what was taken of the budget.
	Loan string
	// Conflict means that the token can't be used for what is wanted, and another one is needed.
	Conflict bool
	// Overrides are the steps that were passed without being done, with the reason: "drain: not empty after 10m0s".
	Overrides []string
}

// Retained is what an instance has left.
type Retained struct {
	Token      string
	ProviderID string
	Disks      []provider.Disk
	Since      time.Time
	// Until is when it is destroyed; zero is never.
	Until time.Time
	// Back means that the machine itself is to be made from it again, when it is not decommissioned any more.
	Back bool
}

// A Stray is a Node that is still to be removed: its instance is proven to be stopped, and the workload API did not answer when the Node was to go. No machine lets go of
// itself while it has one that is waited for.
type Stray struct {
	// Token is that of the instance, by which the Node is found.
	Token string
	// Name is that of the Node, if it was known.
	Name  string
	Since time.Time
	// Blocker is why it could not be removed when that was tried last; empty if it was not tried yet.
	Blocker string
	// Left is why it is not waited for any more, and perhaps left behind: somebody has said so. Empty if it is waited for.
	Left string
}

// A Failure is why a machine doesn't go on.
type Failure struct {
	// Reason is a class of the provider, or one of the Reason constants.
	Reason  string
	Message string
	Since   time.Time
}

// Reasons of a failure, besides the classes of the provider.
const (
	ReasonCreateTimeout       = "CreateTimeout"
	ReasonJoinTimeout         = "JoinTimeout"
	ReasonStartTimeout        = "StartTimeout"
	ReasonUpdateTimeout       = "UpdateTimeout"
	ReasonInstanceLost        = "InstanceLost"
	ReasonInstanceBroken      = "InstanceBroken"
	ReasonDuplicateProviderID = "DuplicateProviderID"
	ReasonSeveralNodes        = "SeveralNodes"
	ReasonMissingSecret       = "MissingSecret"
	ReasonUnsupportedChange   = "UnsupportedChange"
	ReasonVersionSkew         = "VersionSkew"
)
