// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MachineGroup is what is wanted of a MachineSet, and of a MachineDeployment besides how it comes to a new template.
//
// +kubebuilder:validation:XValidation:rule="has(self.template.metadata) && has(self.template.metadata.labels) && has(self.selector.matchLabels) && self.selector.matchLabels.all(k, k in self.template.metadata.labels && self.template.metadata.labels[k] == self.selector.matchLabels[k])",message="template.metadata.labels must have all of selector.matchLabels: a machine that is not selected would be made again and again"
type MachineGroup struct {
	// replicas is how many machines there are to be. Whoever leaves it out leaves it to others, as to an autoscaler; it is 0 until somebody sets it.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`

	// selector has labels of all of its machines, and of no others. It must not change.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0",message="selector must have matchLabels, so that it selects no machines of others"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="selector must not change: create another object"
	Selector MachineSelector `json:"selector"`

	// template is what the machines are made of.
	// +required
	Template MachineTemplate `json:"template"`

	// deleteOrder is which machines go first when there are to be fewer, of those that are equal otherwise. Absent means Random.
	// +optional
	DeleteOrder DeleteOrder `json:"deleteOrder,omitempty"`

	// maxProvisioning bounds how many machines are on their way to their first Node at once. Absent means no bound.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxProvisioning int32 `json:"maxProvisioning,omitempty"`

	// minReady is how long a Node has to be ready until its machine is available. Absent means not at all.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 1m, above 0"
	MinReady *metav1.Duration `json:"minReady,omitempty"`

	// paused stops every change. The status follows.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// MachineSelector selects machines of a namespace by their labels, all of which must match. It has the form of any other label selector.
type MachineSelector struct {
	// matchLabels are labels that a machine has.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`
	// matchExpressions are requirements on labels.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []LabelRequirement `json:"matchExpressions,omitempty"`
}

// LabelRequirement is one requirement on labels.
//
// +kubebuilder:validation:XValidation:rule="(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",message="values must be set for In and NotIn, and for nothing else"
type LabelRequirement struct {
	// key of the label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// operator is how the label relates to values.
	// +required
	Operator LabelOperator `json:"operator"`
	// values that the label has, or has not.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Values []LabelValue `json:"values,omitempty"`
}

// LabelOperator is how a label relates to values.
//
// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
type LabelOperator string

// MachineTemplate is what machines are made of.
type MachineTemplate struct {
	// metadata of the machines, and not of their Nodes: those have spec.nodeMetadata.
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitzero"`
	// spec of the machines.
	// +optional
	Spec MachineConfig `json:"spec,omitzero"`
}

// TemplateMetadata are labels and annotations of machines.
type TemplateMetadata struct {
	// labels of the machines.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// annotations of the machines.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// DeleteOrder is which of several equal machines goes first. Random has nothing to do with age.
//
// +kubebuilder:validation:Enum=Random;Newest;Oldest
type DeleteOrder string
