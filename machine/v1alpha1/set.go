// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MachineSet keeps a number of equal machines.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=belay
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Wanted",type=integer,JSONPath=`.spec.replicas`,description="Machines that there are to be"
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=`.status.replicas`,description="Machines that there are"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Machines whose Node is ready"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Machines whose Node has been ready for long enough"
// +kubebuilder:printcolumn:name="Waiting-For",type=string,JSONPath=`.status.message`,description="What it waits for"
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.failure.reason`,description="What keeps machines from coming up"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Deployment",type=string,priority=1,JSONPath=`.metadata.ownerReferences[?(@.controller==true)].name`,description="Deployment that it belongs to"
// +kubebuilder:printcolumn:name="Version",type=string,priority=1,JSONPath=`.spec.template.spec.versions.kubelet`,description="Kubelet version of its template"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.failure.message`,description="What keeps machines from coming up, in words"
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.serial) || (has(self.status) && has(self.status.serial) && self.status.serial >= oldSelf.status.serial)",message="status.serial must not decrease, nor be left out: no name of a machine is used again"
type MachineSet struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted of the set.
	// +required
	Spec MachineSetSpec `json:"spec"`

	// status is what is known of it. The controller alone writes it.
	// +optional
	Status MachineSetStatus `json:"status,omitempty"`
}

// MachineSetSpec is what is wanted of a set.
type MachineSetSpec struct {
	MachineGroup `json:",inline"`
}

// MachineSetStatus is what is known of a set.
type MachineSetStatus struct {
	// observedGeneration is that of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas are the machines that the set owns, those under deletion included.
	// +optional
	Replicas int32 `json:"replicas"`

	// selector is spec.selector as text.
	// +optional
	Selector string `json:"selector,omitempty"`

	// labeledReplicas are those of them that the selector matches.
	// +optional
	LabeledReplicas int32 `json:"labeledReplicas"`

	// readyReplicas are those whose Node is ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas are those whose Node has been ready for spec.minReady.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// reserved are the machines that are to be created.
	// +optional
	// +listType=atomic
	Reserved []Reservation `json:"reserved,omitempty"`

	// heirs are reservations to come, for machines that were given up as broken.
	// +optional
	// +listType=atomic
	Heirs []Heir `json:"heirs,omitempty"`

	// serial counts the names that were ever reserved.
	// +optional
	Serial int64 `json:"serial,omitempty"`

	// failure is what keeps machines from coming up, as a stockout.
	// +optional
	Failure *Failure `json:"failure,omitempty"`

	// message says what the set waits for.
	// +optional
	Message string `json:"message,omitempty"`

	// conditions are Ready, Healthy, Paused and Valid.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Reservation is a machine that is to be created.
type Reservation struct {
	// name of the machine.
	// +required
	Name string `json:"name"`
	// heir is set for one that stands in for a broken machine.
	// +optional
	Heir *Heir `json:"heir,omitempty"`
}

// Heir stands in for a machine that was given up as broken.
type Heir struct {
	// of is the name of that machine.
	// +required
	Of string `json:"of"`
	// lineage is how many machines in a row were given up before.
	// +optional
	Lineage int64 `json:"lineage,omitempty"`
}

// MachineSetList is a list of MachineSets.
//
// +kubebuilder:object:root=true
type MachineSetList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineSet `json:"items"`
}
