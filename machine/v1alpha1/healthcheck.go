// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MachineHealthCheck mends or replaces machines that have been unhealthy for too long.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=belay
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=`.status.expected`,description="Machines that it looks after"
// +kubebuilder:printcolumn:name="Healthy",type=integer,JSONPath=`.status.healthy`,description="Machines that are healthy"
// +kubebuilder:printcolumn:name="Unhealthy",type=integer,JSONPath=`.status.unhealthy`,description="Machines that are not"
// +kubebuilder:printcolumn:name="Max-Unhealthy",type=string,JSONPath=`.spec.maxUnhealthy`,description="How many may be, until nothing more is begun"
// +kubebuilder:printcolumn:name="Waiting-For",type=string,JSONPath=`.status.message`,description="Why nothing is begun"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Remedy",type=string,priority=1,JSONPath=`.status.attempts[0].remedy`,description="A remedy under way"
// +kubebuilder:printcolumn:name="Of",type=string,priority=1,JSONPath=`.status.attempts[0].machine`,description="The machine that has it"
type MachineHealthCheck struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the check does.
	// +required
	Spec MachineHealthCheckSpec `json:"spec"`

	// status is what is known of it. The controller alone writes it.
	// +optional
	Status MachineHealthCheckStatus `json:"status,omitempty"`
}

// MachineHealthCheckSpec is what a check does.
type MachineHealthCheckSpec struct {
	// selector selects the machines of the namespace that the check looks after.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="selector must have matchLabels or matchExpressions: an empty one selects nothing"
	Selector MachineSelector `json:"selector"`

	// unhealthy is when a machine is, any of them. Absent means that its Node has been not ready, or not heard of, for 10 minutes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Unhealthy []UnhealthyWhen `json:"unhealthy,omitempty"`

	// startupTimeout is how long a machine may have no Node. Absent means "10m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 10m, above 0"
	StartupTimeout *metav1.Duration `json:"startupTimeout,omitempty"`

	// maxUnhealthy is how many of the machines may be unhealthy: a number, or a percentage of them, rounded up. With more nothing is begun, because then
	// it is not the machines. Absent means "20%".
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 2147483647 : self.matches('^(100|[1-9][0-9]?)%$')",message="maxUnhealthy must be a number of machines from 1 on, or a percentage from 1% to 100%; paused begins nothing at all"
	MaxUnhealthy *intstr.IntOrString `json:"maxUnhealthy,omitempty"`

	// ladder has the remedies in their order. Absent means a restart of the agent, a reboot, and a replacement, once each. What can't be had is left out.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Ladder []Rung `json:"ladder,omitempty"`

	// cooldown is how long a machine has to be healthy after a remedy until that has helped. Absent means "10m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 10m, above 0"
	Cooldown *metav1.Duration `json:"cooldown,omitempty"`

	// maxLineage is how many machines in a row are given up; then it is what they are made of. Absent means 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxLineage int32 `json:"maxLineage,omitempty"`

	// proven is the age at which a machine has shown that what it is made of is good. Absent means "6h".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 6h, above 0"
	Proven *metav1.Duration `json:"proven,omitempty"`

	// paused stops every remedy. The status follows.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// UnhealthyWhen is one way to be unhealthy.
//
// +kubebuilder:validation:XValidation:rule="has(self.condition) != has(self.phase)",message="exactly one of condition and phase must be set"
type UnhealthyWhen struct {
	// condition of the Node.
	// +optional
	Condition *NodeCondition `json:"condition,omitempty"`

	// phase of the machine.
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`

	// for is how long that has to last, for example "5m"; "0s" is at once.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 5m, and not negative"
	For metav1.Duration `json:"for"`
}

// NodeCondition is a condition of a Node with a status.
type NodeCondition struct {
	// type of the condition, as Ready.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Type string `json:"type"`
	// status that is unhealthy.
	// +required
	// +kubebuilder:validation:Enum="True";"False";Unknown
	Status string `json:"status"`
}

// Rung is one remedy of a ladder.
type Rung struct {
	// remedy that is tried.
	// +required
	Remedy Remedy `json:"remedy"`

	// tries is how often. Absent means once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Tries int32 `json:"tries,omitempty"`

	// wait is how long it is given to help. Absent means "10m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 10m, above 0"
	Wait *metav1.Duration `json:"wait,omitempty"`
}

// Remedy is what is done about an unhealthy machine. RestartAgent: the agent or the kubelet is restarted. Reboot: the instance is. Replace: the machine is
// deleted, and its set makes another one. Quarantine: it is kept for whoever looks into it.
//
// +kubebuilder:validation:Enum=RestartAgent;Reboot;Replace;Quarantine
type Remedy string

// MachineHealthCheckStatus is what is known of a check.
type MachineHealthCheckStatus struct {
	// observedGeneration is that of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// expected are the machines that the check looks after.
	// +optional
	Expected int32 `json:"expected"`

	// healthy are those that are.
	// +optional
	Healthy int32 `json:"healthy"`

	// unhealthy are those that are not.
	// +optional
	Unhealthy int32 `json:"unhealthy"`

	// attempts are the remedies under way or in their cooldown. They are stored before they are carried out.
	// +optional
	// +listType=atomic
	Attempts []Attempt `json:"attempts,omitempty"`

	// message says why nothing is begun.
	// +optional
	Message string `json:"message,omitempty"`

	// conditions are RemediationAllowed, Healthy, Paused and Valid.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Attempt is the latest remedy of one machine.
type Attempt struct {
	// machine is its name.
	// +required
	Machine string `json:"machine"`
	// uid of the machine.
	// +required
	UID string `json:"uid"`
	// remedy that was begun.
	// +required
	Remedy Remedy `json:"remedy"`
	// rung is its place in the ladder, from 0 on.
	// +optional
	Rung int32 `json:"rung,omitempty"`
	// try is how often the rung was taken.
	// +optional
	Try int32 `json:"try,omitempty"`
	// since is when it was begun.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
	// healthySince is since when the machine has been healthy again. Absent while it is not.
	// +optional
	HealthySince metav1.Time `json:"healthySince,omitzero"`
	// reason is what it was begun for.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// MachineHealthCheckList is a list of MachineHealthChecks.
//
// +kubebuilder:object:root=true
type MachineHealthCheckList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineHealthCheck `json:"items"`
}
