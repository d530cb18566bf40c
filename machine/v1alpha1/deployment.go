// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MachineDeployment brings a number of machines from one template to the next.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=belay
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Wanted",type=integer,JSONPath=`.spec.replicas`,description="Machines that there are to be"
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=`.status.replicas`,description="Machines that there are"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`,description="Machines of the present template"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Machines whose Node is ready"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Machines whose Node has been ready for long enough"
// +kubebuilder:printcolumn:name="Waiting-For",type=string,JSONPath=`.status.message`,description="What it waits for"
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.failure.reason`,description="Why it does not go on"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Version",type=string,priority=1,JSONPath=`.spec.template.spec.versions.kubelet`,description="Kubelet version of its template"
// +kubebuilder:printcolumn:name="Revision",type=integer,priority=1,JSONPath=`.status.revision`,description="Number of its template"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.failure.message`,description="Why it does not go on, in words"
type MachineDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted of the deployment.
	// +required
	Spec MachineDeploymentSpec `json:"spec"`

	// status is what is known of it. The controller alone writes it.
	// +optional
	Status MachineDeploymentStatus `json:"status,omitempty"`
}

// MachineDeploymentSpec is what is wanted of a deployment.
//
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchExpressions)",message="selector of a MachineDeployment must have matchLabels only: its sets have these labels too"
type MachineDeploymentSpec struct {
	MachineGroup `json:",inline"`

	// strategy is how machines come to a new template. Absent means RollingUpdate with one machine more at a time.
	// +optional
	Strategy *Strategy `json:"strategy,omitempty"`

	// progressDeadline is how long a rollout may stand still until that is a failure. Absent means "30m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 30m, above 0"
	ProgressDeadline *metav1.Duration `json:"progressDeadline,omitempty"`

	// historyLimit is how many old sets without machines are kept. Absent means 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	HistoryLimit *int32 `json:"historyLimit,omitempty"`
}

// Strategy is how machines come to a new template.
//
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'OnDelete' || (!has(self.maxSurge) && !has(self.maxUnavailable))",message="maxSurge and maxUnavailable do not go with type: OnDelete"
type Strategy struct {
	// type of the strategy. Absent means RollingUpdate.
	// +optional
	Type StrategyType `json:"type,omitempty"`

	// maxSurge is how many machines there may be beyond the replicas: a number, or a percentage of them, rounded up. Absent means 0, and 1 if
	// maxUnavailable is 0 too.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 2147483647 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxSurge must be a number of machines from 0 on, or a percentage from 0% to 100%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// maxUnavailable is how many of the replicas may be missing: a number, or a percentage of them, rounded down. Absent means 0.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 2147483647 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxUnavailable must be a number of machines from 0 on, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// StrategyType names a way. RollingUpdate: new machines are made, and old ones deleted. OnDelete: a new machine is made for each old one that somebody
// else deletes. InPlace: machines that their provider can update in place are moved to the new template, the others as with RollingUpdate.
//
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete;InPlace
type StrategyType string

// MachineDeploymentStatus is what is known of a deployment.
type MachineDeploymentStatus struct {
	// observedGeneration is that of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas are its machines, those under deletion included.
	// +optional
	Replicas int32 `json:"replicas"`

	// selector is spec.selector as text.
	// +optional
	Selector string `json:"selector,omitempty"`

	// updatedReplicas are those of the present template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// readyReplicas are those whose Node is ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas are those whose Node has been ready for spec.minReady.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// revision is the number of the present template.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// collisions counts the names of sets that others had taken.
	// +optional
	Collisions int64 `json:"collisions,omitempty"`

	// progressed is when the rollout came forward last, or was seen to be complete.
	// +optional
	Progressed metav1.Time `json:"progressed,omitzero"`

	// failure is why it does not go on.
	// +optional
	Failure *Failure `json:"failure,omitempty"`

	// message says what the deployment waits for.
	// +optional
	Message string `json:"message,omitempty"`

	// conditions are Ready, UpToDate, Healthy, Paused and Valid.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MachineDeploymentList is a list of MachineDeployments.
//
// +kubebuilder:object:root=true
type MachineDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineDeployment `json:"items"`
}
