// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxSlots is how many slots a ledger holds. A larger domain, or one with wider caps, is to be split.
const MaxSlots = 1000

// DisruptionLedger says which nodes of a disruption domain may be disrupted. All caps are decided on it: the controllers alone write it, by
// compare-and-swap, and each object is one domain.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=dl,categories=belay
// +kubebuilder:printcolumn:name="Epoch",type=integer,JSONPath=`.spec.epoch`,description="Last attempt that was admitted"
// +kubebuilder:printcolumn:name="Slots",type=integer,JSONPath=`.spec.count`,description="Nodes that may be disrupted, or are broken"
// +kubebuilder:printcolumn:name="Closed-By",type=string,JSONPath=`.spec.closures[0].request`,description="First request or detector that keeps nodes from being admitted; empty is open"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.spec.closures[0].reason`,description="Why it is closed"
// +kubebuilder:printcolumn:name="Scope",type=string,priority=1,JSONPath=`.spec.closures[0].scope`,description="Rollout that is closed; empty is the whole domain"
// +kubebuilder:printcolumn:name="Fence",type=integer,priority=1,JSONPath=`.spec.fence`,description="Attempts up to it are of a ledger that is lost"
//
// +kubebuilder:validation:XValidation:rule="self.spec.epoch >= oldSelf.spec.epoch",message="epoch must not decrease"
// +kubebuilder:validation:XValidation:rule="self.spec.fence >= oldSelf.spec.fence",message="fence must not decrease, nor be left out"
type DisruptionLedger struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the ledger.
	// +required
	Spec DisruptionLedgerSpec `json:"spec"`
}

// For field management the ledger is one field: only one writes it, and always whole. The owners of each field of 250 slots would be half of the object,
// and half of the time that the API server takes for a write.

// DisruptionLedgerSpec is the ledger.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="self.fence <= self.epoch",message="fence must not be above epoch"
// +kubebuilder:validation:XValidation:rule="self.count == (has(self.slots) ? self.slots.size() : 0)",message="count must be the number of slots"
// +kubebuilder:validation:XValidation:rule="!has(self.slots) || self.slots.size() == 0 || self.slots.map(s, s.attempt).max() <= self.epoch",message="the attempt of a slot must not be above epoch"
// +kubebuilder:validation:XValidation:rule="!has(self.slots) || self.slots.transformMapEntry(i, s, {s.node: i}).size() == self.slots.size()",message="a node must have one slot at most"
// +kubebuilder:validation:XValidation:rule="!has(self.slots) || self.slots.transformMapEntry(i, s, {s.attempt: i}).size() == self.slots.size()",message="an attempt must be of one slot"
type DisruptionLedgerSpec struct {
	// epoch is the last attempt that was admitted.
	// +required
	// +kubebuilder:validation:Minimum=0
	Epoch int64 `json:"epoch"`

	// fence: attempts up to it were admitted by a ledger that is lost.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	Fence int64 `json:"fence,omitempty"`

	// count is the number of slots, for people.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	Count int64 `json:"count,omitempty"`

	// closures say what may not be admitted.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Closures []Closure `json:"closures,omitempty"`

	// slots are the nodes that may be disrupted, or that are broken, in the order of their admission.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MaxItems=1000
	Slots []Slot `json:"slots,omitempty"`
}

// Closure keeps further attempts of a scope from being admitted.
type Closure struct {
	// scope is the UID of a rollout. Absent means the whole domain.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Scope string `json:"scope,omitempty"`

	// request is the ID of the request by which the scope was closed, or the name of the detector that did it. The same one opens it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Request string `json:"request"`

	// reason says it in words.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Reason string `json:"reason,omitempty"`
}

// The rules of slots are those of a single field where they can be, and ask first for what is mostly so: each field that a rule reads of each slot costs the API
// server microseconds, in each write.

// Slot is the place of one node in a ledger: the right to disrupt it.
//
// +kubebuilder:validation:XValidation:rule="self.rollout == oldSelf.rollout || self.attempt > oldSelf.attempt",message="rollout changes only together with a higher attempt"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.state) || self.attempt > oldSelf.attempt || (has(self.state) && (oldSelf.state == 'Suspect' || self.state == 'Quarantined' || self.state == oldSelf.state))",message="the state of a slot only gets worse"
type Slot struct {
	// node is the name of the Node.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a UID is of one node: node must not change"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`

	// uid of the Node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid"`

	// attempt is the permission that the slot stands for.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="the attempt of a slot must not decrease"
	// +kubebuilder:validation:Minimum=1
	Attempt int64 `json:"attempt"`

	// rollout is the UID of the rollout that it was admitted for.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Rollout string `json:"rollout"`

	// keys are what else than the total the slot counts for: "zone/a", "class/Intrusive".
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=320
	Keys []string `json:"keys,omitempty"`

	// state is what is thought of a node that does not go well. Absent as long as all goes well.
	// +optional
	State SlotState `json:"state,omitempty"`
}

// SlotState is what is thought of a node that does not go well.
//
// +kubebuilder:validation:Enum=Suspect;Broken;Quarantined
type SlotState string

// DisruptionLedgerList is a list of DisruptionLedgers.
//
// +kubebuilder:object:root=true
type DisruptionLedgerList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DisruptionLedger `json:"items"`
}
