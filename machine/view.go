// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// A View is all that [Decide] looks at.
type View struct {
	Machine Machine
	Now     time.Time
	// Cluster is the identity of the cluster; tokens are made of it.
	Cluster string
	Timeouts
	// Can is what the provider can do.
	Can Can
	// Nodes are those of the workload cluster with the ProviderID of the machine. NodesKnown is false while that cluster can't be asked; NodesUnknown is
	// since when.
	Nodes        []Node
	NodesKnown   bool
	NodesUnknown time.Time
	// NodesLive means that Nodes are what that cluster itself has said in this pass. A cache may not have seen one yet: that there is none is believed only so.
	NodesLive bool
	// Listed is what the provider's last list said of this token; nil with Lists means that it was not in it. Lists is when that list was asked for.
	Listed *provider.Instance
	Lists  time.Time
	// Twins are other machines with the same ProviderID.
	Twins []Key
	// Fresh means that the token was made by this process in this pass: nobody else can have used it.
	Fresh bool
	// Resume means that the last pass has found the instance of the token Pending, and that it was not carried forward just before: a provider whose Get is a
	// look alone does that by Create.
	Resume bool
	// Asked means that the provider has been asked for the instance in this pass.
	Asked bool
	// NodeStarted means that the Node was given what it should have, in this pass.
	NodeStarted bool
	// NodeAsked means that the removal of the Node was asked for in this pass.
	NodeAsked bool
	// NotBefore is when the provider may be called again after a failure.
	NotBefore time.Time
	// Polls are what the provider goes on with, and when it makes sense to ask for that again, as it has said.
	Polls []Poll
	// Skew is why the wanted kubelet version can't run beside the control plane; empty if it can.
	Skew string
	// Invalid is why the config can't be one, by a provider that can say so; empty if it can, or if that is not known. It is looked at before a change.
	Invalid string
	// Ungated means that nobody is asked before an end, and nobody has to be left or told after it.
	Ungated bool
	// Agreed means that the gates have agreed to this end, and that nothing was done in this pass since: the first step that can't be undone may follow.
	Agreed bool
	// Backup means that something has to be done before a machine of the control plane is changed, as a backup of its store.
	Backup bool
	// Busy is which other machine of the control plane goes first, and why, by [Machine.WaitsFor]: they go one by one. Empty if none does. Yield means that its claim
	// comes before this one's. Both are looked up once the store has what this machine says of its turn.
	Busy  string
	Yield bool
	// Started is why the role's checks have not passed yet; empty if they have.
	Started string
}

// A Poll is a call that has to be made again.
type Poll struct {
	Kind  ActionKind
	Token string
	At    time.Time
}

// Timeouts are when something that takes too long is called a failure. The zero value of each is its default.
type Timeouts struct {
	Create time.Duration // 20 min, of an instance that is made
	Join   time.Duration // 15 min, of a Node that should appear
	Start  time.Duration // 15 min, of the checks of a new machine's roles
	Update time.Duration // 20 min, of a change in place
}

// Can is what a provider can do.
type Can struct{ Get, Plan, Update, Stop, Adopt bool }

// A Node is one of the workload cluster.
type Node struct {
	NodeRef
	ProviderID string
	Ready      bool
	Versions   provider.Versions
	// Boot is the ID of the boot that the kubelet reports; empty if it reports none. Beat is when it has reported last that it is ready or not, by its own clock:
	// it is compared with other ones of the same Node alone. Zero if the Node doesn't say: then whether it is ready is believed as it is.
	Boot string
	Beat time.Time
	// Uninitialized means that it still has the taint of a node that has not been looked at.
	Uninitialized bool
	Taints        []provider.Taint
	// Labels and Annotations are those of the Node, to be read only.
	Labels, Annotations map[string]string
	// Given is the record of what it was given; nil if there is none.
	Given *Given
	// Marked means that the cluster-autoscaler is kept from it by us.
	Marked bool
	// Held means that our mark of an update or an end is on it.
	Held bool
}

// An ActionKind is one effect.
type ActionKind string

// Actions. After each comes [Learn] with what it brought.
const (
	// None: nothing to do but to wait.
	None ActionKind = ""
	// SetFinalizer writes the finalizer.
	SetFinalizer ActionKind = "SetFinalizer"
	// Lookup asks the provider for the instance of the token.
	Lookup ActionKind = "Lookup"
	// Create asks the provider for it.
	Create ActionKind = "Create"
	// Adopt asks the provider for it, from retained disks.
	Adopt ActionKind = "Adopt"
	// SetProviderID writes Instance.ProviderID to the spec.
	SetProviderID ActionKind = "SetProviderID"
	// FindNodes asks the workload cluster itself for the Nodes.
	FindNodes ActionKind = "FindNodes"
	// StartNode gives the Node labels, annotations, taints and the config source by [Node.Change], and takes off the taint of a node that has not been
	// looked at.
	StartNode ActionKind = "StartNode"
	// PlanUpdate asks the provider what the change would do.
	PlanUpdate ActionKind = "PlanUpdate"
	// TakeSlot asks the disruption budget.
	TakeSlot ActionKind = "TakeSlot"
	// FreeSlot gives it back.
	FreeSlot ActionKind = "FreeSlot"
	// AskGates asks whether the machine may end: before it is disturbed, and again just before the first step that can't be undone.
	AskGates ActionKind = "AskGates"
	// Drain cordons the Node and takes the work off it, one bounded step.
	Drain ActionKind = "Drain"
	// Uncordon takes off what Drain has put on.
	Uncordon ActionKind = "Uncordon"
	// Backup has done what has to come before a change of a machine of the control plane. The Node is marked before.
	Backup ActionKind = "Backup"
	// UpdateInstance asks the provider for the change.
	UpdateInstance ActionKind = "UpdateInstance"
	// Leave has the machine taken out of the member lists of its roles' services.
	Leave ActionKind = "Leave"
	// Stop asks the provider to switch the instance off.
	Stop ActionKind = "Stop"
	// Delete asks the provider to give everything back, by Release.Mode.
	Delete ActionKind = "Delete"
	// RemoveNode removes the Nodes of the present instance; with a Token those that the workload cluster itself has of that one, which has ended.
	RemoveNode ActionKind = "RemoveNode"
	// DestroyRetained asks the provider for the end of Retained.
	DestroyRetained ActionKind = "DestroyRetained"
	// RemoveFinalizer lets the machine go.
	RemoveFinalizer ActionKind = "RemoveFinalizer"
)

// An Action is an effect with what it is about.
type Action struct {
	Kind ActionKind
	// Token is that of the instance.
	Token string
	// Attempt names the change that a Backup is for, among all of the machine: it is stored before, and the same after a crash. Of TakeSlot and FreeSlot it is the
	// loan: another one for the next change, also after a crash before the first was stored.
	Attempt string
	// ProviderID is for SetProviderID.
	ProviderID string
	// Retained is for DestroyRetained.
	Retained Retained
	// Unseen is for AskGates: what only the workload cluster knows need not be looked at, as it has been away for too long and the disks are kept.
	Unseen bool
}

// A Decision is what comes next. If Status differs from that of the View in more than what is only shown, it is stored first, and on a conflict
// nothing is done. Then comes the action.
type Decision struct {
	Status Status
	// Store means that Status has to be stored before the action.
	Store  bool
	Action Action
	// After is when to look again though nothing has changed; 0 is not before.
	After time.Duration
}

// An Outcome is what an action has brought.
type Outcome struct {
	Instance provider.Instance
	Plan     provider.Plan
	Progress provider.Progress
	// Done and Blocked are those of slots, gates, drains and hooks.
	Done    bool
	Blocked string
	// Unseen means that gates have agreed without what only the workload cluster knows.
	Unseen bool
	// Err is a provider's error, or another one.
	Err error
}
