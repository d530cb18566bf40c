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

// For field management the ledger is one field: only one writes it, and always whole.

// DisruptionLedgerSpec is the ledger.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="self.fence <= self.epoch",message="fence must not be above epoch"
// +kubebuilder:validation:XValidation:rule="self.count == (has(self.slots) ? self.slots.size() : 0)",message="count must be the number of slots"
// +kubebuilder:validation:XValidation:rule="!has(self.slots) || self.slots.all(s, int(s.split(' ')[2].substring(8)) <= self.epoch)",message="the attempt of a slot must not be above epoch"
// +kubebuilder:validation:XValidation:rule="!has(self.slots) || self.slots.map(s, s.split(' ')).transformMapEntry(i, f, {f[0]: i, f[1]: i, f[2]: i}).size() == 3 * self.slots.size()",message="a node, a UID and an attempt must have one slot at most"
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

	// slots are the nodes that may be disrupted, or that are broken, in the order of their admission: each a line like
	// "node=worker-1 uid=3c1d5a5e attempt=12 rollout=7e0f0ab0 state=Broken keys=class/Intrusive,zone/a", with the UID of the Node, the permission that
	// the slot stands for, the UID of the rollout that it was admitted for, what is thought of a node that does not go well, and what else than the total
	// the slot counts for. A space, a comma or a percent sign in a value is written as in a URL: %20.
	// +optional
	// +listType=atomic
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

// DisruptionLedgerList is a list of DisruptionLedgers.
//
// +kubebuilder:object:root=true
type DisruptionLedgerList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DisruptionLedger `json:"items"`
}
