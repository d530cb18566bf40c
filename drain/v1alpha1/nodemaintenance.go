// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/drain"
)

// Finalizer keeps a NodeMaintenance until its nodes are given back.
const Finalizer = "belay.dev/node-maintenance"

// NodeMaintenance keeps nodes in maintenance for as long as it exists. Deleting it gives them back.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=belay
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`,description="Of one node"
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`,description="What is wanted"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="How far it has come"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyNodes`,description="Ready nodes"
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.totalNodes`,description="All nodes"
// +kubebuilder:printcolumn:name="Blocked",type=integer,JSONPath=`.status.preview.blocked`,description="Blocked pods"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.spec.reason`,description="Why"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`,description="Obstacle"
type NodeMaintenance struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec NodeMaintenanceSpec `json:"spec"`

	// status is how far it has come. The controller alone writes it.
	// +optional
	Status NodeMaintenanceStatus `json:"status,omitempty"`
}

// NodeMaintenanceSpec is what is wanted of which nodes. Exactly one of nodeName and nodeSelector must be set.
//
// +kubebuilder:validation:XValidation:rule="has(self.nodeName) != has(self.nodeSelector)",message="exactly one of nodeName and nodeSelector must be set"
// +kubebuilder:validation:XValidation:rule="has(self.nodeName) == has(oldSelf.nodeName) && (!has(self.nodeName) || self.nodeName == oldSelf.nodeName)",message="nodeName is immutable: delete this maintenance, which gives its node back, and create another one"
// +kubebuilder:validation:XValidation:rule="has(self.nodeSelector) == has(oldSelf.nodeSelector) && (!has(self.nodeSelector) || self.nodeSelector == oldSelf.nodeSelector)",message="nodeSelector is immutable: delete this maintenance, which gives its nodes back, and create another one"
// +kubebuilder:validation:XValidation:rule="self.mode == oldSelf.mode || (oldSelf.mode == 'Cordon' && self.mode == 'Drain')",message="mode may change from Cordon to Drain alone: for another one delete this maintenance, and create another one"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Hold' || has(self.deadline)",message="deadline must be set for mode Hold: it is when the Lease of the node is renewed no more, at most 4h after the hold begins"
// +kubebuilder:validation:XValidation:rule="!has(self.maxConcurrent) || has(self.nodeSelector)",message="maxConcurrent must not be set beside nodeName, which is one node"
type NodeMaintenanceSpec struct {
	// nodeName is the name of one Node. It need not exist yet.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName,omitempty"`

	// nodeSelector selects Nodes by their labels. A Node that matches later is taken in, and one that matches no more is
	// given back.
	// +optional
	NodeSelector *NodeSelector `json:"nodeSelector,omitempty"`

	// mode is what is wanted of each node.
	// +optional
	// +kubebuilder:default=Drain
	Mode Mode `json:"mode,omitempty"`

	// reason says to people why.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// windows are the times in which nodes may be begun and evictions may start. Absent means always. Nothing is written
	// to a node before the first window opens. A node that was begun stays cordoned between windows.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Windows []Window `json:"windows,omitempty"`

	// deadline ends what goes on: no eviction starts after it, and no node is begun. What is cordoned stays so until
	// this object is deleted. It ends a hold. Another deadline lets a drain go on.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`

	// maxConcurrent is how many nodes of nodeSelector may be draining at a time: a number, or a percentage of them,
	// rounded down, at least one. Absent means 1. The others are cordoned meanwhile.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 2147483647 : self.matches('^(100|[1-9][0-9]?)%$')",message="maxConcurrent must be a number of nodes from 1 on, or a percentage from 1% to 100%"
	MaxConcurrent *intstr.IntOrString `json:"maxConcurrent,omitempty"`

	// policy says how pods are treated, as drain.Policy in JSON; its durations are strings, such as "10m". Absent means
	// the safe one. Its windows and soak must not be set.
	// +optional
	Policy *drain.Policy `json:"policy,omitempty"`
}

// Mode is what is wanted of a node. Cordon: no new pods. Drain: cordoned, and emptied. Hold: cordoned, its pods stay,
// and its Lease is renewed while the kubelet is down.
//
// +kubebuilder:validation:Enum=Cordon;Drain;Hold
type Mode string

// Window is a time in which evictions may start: from is in it, until is not.
//
// +kubebuilder:validation:XValidation:rule="has(self.from) || has(self.until)",message="at least one of from and until must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.from) || !has(self.until) || self.from < self.until",message="until must be after from"
type Window struct {
	// from is when it opens. Absent means that it is open until its end.
	// +optional
	From *metav1.Time `json:"from,omitempty"`
	// until is when it closes. Absent means never.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// NodeSelector selects Nodes by their labels, all of which must match. It has the form of any other label selector.
//
// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="nodeSelector must have matchLabels or matchExpressions: an empty one would select every node"
type NodeSelector struct {
	// matchLabels are labels that a Node has.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`
	// matchExpressions are requirements on labels.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []LabelRequirement `json:"matchExpressions,omitempty"`
}

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
type LabelValue string

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

// NodeMaintenanceList is a list of NodeMaintenances.
//
// +kubebuilder:object:root=true
type NodeMaintenanceList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeMaintenance `json:"items"`
}
