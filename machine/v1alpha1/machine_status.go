// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MachineStatus is what is known of a machine. Times are those of the controller's clock, to the second.
type MachineStatus struct {
	// observedGeneration is that of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is where the machine stands.
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`

	// step is what the machine is at.
	// +optional
	Step *MachineStep `json:"step,omitempty"`

	// incarnation counts the instances that the machine has had.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Incarnation int64 `json:"incarnation,omitempty"`

	// token is that of the present instance. It is stored before the instance is asked for.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Token string `json:"token,omitempty"`

	// digest is that of what the instance was asked to be, last.
	// +optional
	Digest string `json:"digest,omitempty"`

	// providerDigest is the digest of the same without the Node's settings: where it stays, an edit is about these alone, and no affair of the provider.
	// +optional
	ProviderDigest string `json:"providerDigest,omitempty"`

	// instance is what the provider has said last.
	// +optional
	Instance *Instance `json:"instance,omitempty"`

	// nodeRef is the Node of the present instance.
	// +optional
	NodeRef *NodeRef `json:"nodeRef,omitempty"`

	// versions are what the Node reports.
	// +optional
	Versions *Versions `json:"versions,omitempty"`

	// update is the change under way.
	// +optional
	Update *MachineUpdate `json:"update,omitempty"`

	// release is the end under way, of the machine or of its present instance.
	// +optional
	Release *MachineRelease `json:"release,omitempty"`

	// retained are instances whose disks were kept.
	// +optional
	// +listType=atomic
	Retained []Retained `json:"retained,omitempty"`

	// strayNodes are Nodes of instances that have ended, which the workload API could not be asked to remove yet.
	// +optional
	// +listType=atomic
	StrayNodes []StrayNode `json:"strayNodes,omitempty"`

	// failure is why the machine does not go on.
	// +optional
	Failure *Failure `json:"failure,omitempty"`

	// failureReason is failure.reason if phase is Failed, and absent otherwise: the cluster-autoscaler takes it, and the message, for an instance that
	// will not become a Node.
	// +optional
	FailureReason string `json:"failureReason,omitempty"`

	// failureMessage is failure.message if phase is Failed.
	// +optional
	FailureMessage string `json:"failureMessage,omitempty"`

	// lastUpdated is when the status changed last.
	// +optional
	LastUpdated metav1.Time `json:"lastUpdated,omitzero"`

	// conditions are those named Condition... in the package. They say what the rest of the status says; nobody decides by them.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MachinePhase is where a machine stands. Retired: decommissioned, and not deleted. Failed: somebody, or its owner, has to do something; it goes on by
// itself where that can help.
//
// +kubebuilder:validation:Enum=Pending;Provisioning;Joining;Running;Updating;Deleting;Retired;Failed
type MachinePhase string

// MachineStep is what a machine is at.
type MachineStep struct {
	// name of the step.
	// +required
	Name string `json:"name"`
	// since is when it began.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
	// blocker is what the machine waits for, in words. Absent if it goes on by itself.
	// +optional
	Blocker string `json:"blocker,omitempty"`
}

// Instance is what a provider has made.
type Instance struct {
	// token of the instance.
	// +optional
	Token string `json:"token,omitempty"`
	// providerID of the instance.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// owner is for whom it was made.
	// +optional
	Owner *InstanceOwner `json:"owner,omitempty"`
	// state is what it does, as Pending, Running, Stopping, Stopped, Retained or Broken.
	// +optional
	State string `json:"state,omitempty"`
	// digest of what it was made of, or was last updated to.
	// +optional
	Digest string `json:"digest,omitempty"`
	// addresses of it.
	// +optional
	// +listType=atomic
	Addresses []Address `json:"addresses,omitempty"`
	// disks of it.
	// +optional
	// +listType=atomic
	Disks []Disk `json:"disks,omitempty"`
	// until is when it may be destroyed, if it is retained.
	// +optional
	Until metav1.Time `json:"until,omitzero"`
	// message says why it is in its state.
	// +optional
	Message string `json:"message,omitempty"`
}

// InstanceOwner is for whom an instance was made.
type InstanceOwner struct {
	// cluster is the identity of the cluster.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// namespace of the machine.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the machine.
	// +optional
	Name string `json:"name,omitempty"`
	// uid of the machine.
	// +optional
	UID string `json:"uid,omitempty"`
	// incarnation of the machine.
	// +optional
	Incarnation int64 `json:"incarnation,omitempty"`
}

// Address is one of a Node.
type Address struct {
	// type, as InternalIP.
	// +required
	Type string `json:"type"`
	// address of that type.
	// +required
	Address string `json:"address"`
}

// Disk holds data of an instance.
type Disk struct {
	// id of the disk, by its provider.
	// +required
	ID string `json:"id"`
	// bytes is its size. Absent where that is not known.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
}

// NodeRef is one Node of the workload cluster.
type NodeRef struct {
	// name of the Node.
	// +required
	Name string `json:"name"`
	// uid of the Node.
	// +optional
	UID string `json:"uid,omitempty"`
}

// MachineUpdate is a change of an instance. What is not true yet is absent.
type MachineUpdate struct {
	// digest is that of what the instance is to be. The annotation machine.belay.dev/approve takes it.
	// +optional
	Digest string `json:"digest,omitempty"`
	// plan is what the change does.
	// +optional
	Plan *UpdatePlan `json:"plan,omitempty"`
	// since is when it was planned.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
	// slot: the disruption budget was charged.
	// +optional
	Slot bool `json:"slot,omitempty"`
	// loan names what was taken of it.
	// +optional
	Loan string `json:"loan,omitempty"`
	// drained: the node was emptied.
	// +optional
	Drained bool `json:"drained,omitempty"`
	// backedUp: what has to come before it was done.
	// +optional
	BackedUp bool `json:"backedUp,omitempty"`
	// sent: the provider was asked.
	// +optional
	Sent bool `json:"sent,omitempty"`
	// done: the provider has said so. The Node has not shown it yet.
	// +optional
	Done bool `json:"done,omitempty"`
	// before is what the Node reported of its host when the provider was asked, as a digest.
	// +optional
	Before string `json:"before,omitempty"`
	// heard is the report of the kubelet that there was when the provider was done. Another one has to follow.
	// +optional
	Heard string `json:"heard,omitempty"`
	// retry is the digest of the annotation machine.belay.dev/retry when the change was planned.
	// +optional
	Retry string `json:"retry,omitempty"`
	// overrides are the steps that were passed without being done, with the reason.
	// +optional
	// +listType=atomic
	Overrides []string `json:"overrides,omitempty"`
}

// UpdatePlan is what a change does.
type UpdatePlan struct {
	// method is how it is carried out: InPlace, Replace, Unsupported or Nothing.
	// +optional
	Method string `json:"method,omitempty"`
	// reason for that, in words.
	// +optional
	Reason string `json:"reason,omitempty"`
	// disrupts: work on the node is disturbed, so that it is drained before.
	// +optional
	Disrupts bool `json:"disrupts,omitempty"`
	// lost are disks whose data does not survive the change.
	// +optional
	// +listType=atomic
	Lost []Disk `json:"lost,omitempty"`
}

// MachineRelease is the end of an instance. Each step is passed once; what is not behind it is absent.
type MachineRelease struct {
	// replace: the machine goes on with another instance.
	// +optional
	Replace bool `json:"replace,omitempty"`
	// mode is what becomes of disks, fixed when the end begins.
	// +optional
	Mode DiskPolicy `json:"mode,omitempty"`
	// since is when it began.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
	// gated: it was allowed.
	// +optional
	Gated bool `json:"gated,omitempty"`
	// slot: the disruption budget was charged.
	// +optional
	Slot bool `json:"slot,omitempty"`
	// loan names what was taken of it.
	// +optional
	Loan string `json:"loan,omitempty"`
	// hooked: the hooks before the drain are gone.
	// +optional
	Hooked bool `json:"hooked,omitempty"`
	// drained: the node was emptied.
	// +optional
	Drained bool `json:"drained,omitempty"`
	// hooksBeforeStop: the hooks before the stop are gone.
	// +optional
	HooksBeforeStop bool `json:"hooksBeforeStop,omitempty"`
	// backedUp: what has to come before a replacement was done.
	// +optional
	BackedUp bool `json:"backedUp,omitempty"`
	// left: the machine is in no member list.
	// +optional
	Left bool `json:"left,omitempty"`
	// stopped: the instance is proven to run no more.
	// +optional
	Stopped bool `json:"stopped,omitempty"`
	// released: the provider has given everything back, or retains it.
	// +optional
	Released bool `json:"released,omitempty"`
	// nodeGone: the Node was removed, or is one of strayNodes.
	// +optional
	NodeGone bool `json:"nodeGone,omitempty"`
	// begun: the first step that can't be undone may have been taken. From here it goes to its end.
	// +optional
	Begun bool `json:"begun,omitempty"`
	// conflict: the token can't be used for what is wanted, and another one is needed.
	// +optional
	Conflict bool `json:"conflict,omitempty"`
	// overrides are the steps that were passed without being done, with the reason.
	// +optional
	// +listType=atomic
	Overrides []string `json:"overrides,omitempty"`
}

// Retained is what an instance has left. A Machine with its token in spec.adopt takes it over.
type Retained struct {
	// token of the instance.
	// +required
	Token string `json:"token"`
	// providerID that it had.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// disks that were kept.
	// +optional
	// +listType=atomic
	Disks []Disk `json:"disks,omitempty"`
	// since is when it ended.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
	// until is when it is destroyed. Absent means never.
	// +optional
	Until metav1.Time `json:"until,omitzero"`
	// back: the machine itself is made from it again when it is not decommissioned any more.
	// +optional
	Back bool `json:"back,omitempty"`
}

// StrayNode is a Node that is still to be removed. A Machine that is deleted stays as long as it has one that is waited for.
type StrayNode struct {
	// token of the instance that had it, which is stopped.
	// +required
	Token string `json:"token"`
	// name of the Node, if it was known.
	// +optional
	Name string `json:"name,omitempty"`
	// since is when it was to be removed.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
	// blocker is why it could not be removed when that was tried last.
	// +optional
	Blocker string `json:"blocker,omitempty"`
	// left is why it is not waited for any more: it may be left behind.
	// +optional
	Left string `json:"left,omitempty"`
}

// Failure is why a machine does not go on.
type Failure struct {
	// reason in one word: a class of the provider's errors, as Stockout, or one of the machine's own, as JoinTimeout.
	// +required
	Reason string `json:"reason"`
	// message says it in a sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// since is when it began.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
}
