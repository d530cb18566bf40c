// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/belayproject/belay/configsync/v1alpha1"
)

// Machine is one machine: what is wanted of it, and what is known. To delete it is to have everything given back but the disks that it retains.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=belay
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Where the machine stands"
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.step.name`,description="What it is at"
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeRef.name`,description="Its Node"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.versions.kubelet`,description="Kubelet version that the Node reports"
// +kubebuilder:printcolumn:name="Provider-ID",type=string,JSONPath=`.spec.providerID`,description="Where it is"
// +kubebuilder:printcolumn:name="Waiting-For",type=string,JSONPath=`.status.step.blocker`,description="What it waits for"
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.failure.reason`,description="Why it does not go on"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Since",type=date,priority=1,JSONPath=`.status.step.since`,description="For how long it has been at its step"
// +kubebuilder:printcolumn:name="Set",type=string,priority=1,JSONPath=`.metadata.ownerReferences[?(@.controller==true)].name`,description="Set that it belongs to"
// +kubebuilder:printcolumn:name="Wanted",type=string,priority=1,JSONPath=`.spec.versions.kubelet`,description="Kubelet version that it should have"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.failure.message`,description="Why it does not go on, in words"
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.spec.providerID) || has(self.spec.providerID)",message="spec.providerID must not be removed: by it a machine that has lost its status is found again"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.spec.providerID) || !has(self.spec.providerID) || self.spec.providerID == oldSelf.spec.providerID || self.spec.providerID.substring(self.spec.providerID.lastIndexOf('/') + 1) != oldSelf.spec.providerID.substring(oldSelf.spec.providerID.lastIndexOf('/') + 1)",message="spec.providerID must not change for the same instance: another one has another token as its last path segment"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.providerID) || (has(oldSelf.spec.providerID) && self.spec.providerID == oldSelf.spec.providerID) || !has(self.status) || !has(self.status.token) || self.spec.providerID.endsWith('/' + self.status.token)",message="the last path segment of spec.providerID must be status.token: the machine has that instance"
// +kubebuilder:validation:XValidation:rule="has(self.spec.adopt) == has(oldSelf.spec.adopt) && (!has(self.spec.adopt) || self.spec.adopt == oldSelf.spec.adopt)",message="spec.adopt must not change: create another Machine"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.incarnation) || (has(self.status) && has(self.status.incarnation) && self.status.incarnation >= oldSelf.status.incarnation)",message="status.incarnation must not decrease, nor be left out"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.token) || (has(self.status) && has(self.status.token) && (self.status.token == oldSelf.status.token || self.status.incarnation > oldSelf.status.incarnation))",message="status.token must stay as long as status.incarnation does: an instance was asked for with it"
type Machine struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted of the machine.
	// +required
	Spec MachineSpec `json:"spec"`

	// status is what is known of it. The controller alone writes it.
	// +optional
	Status MachineStatus `json:"status,omitempty"`
}

// MachineSpec is what is wanted of a machine. To copy one into another cluster, leave out providerID and adopt.
type MachineSpec struct {
	MachineConfig `json:",inline"`

	// providerID is what the Node has. It is written here when it is known. Somebody may write it into a new Machine for an instance that there is
	// already.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][-+.A-Za-z0-9]*://([^/]*/)+[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="providerID must be like scheme:///zone/token, with a last path segment of 1 to 63 lower case letters, digits and dashes"
	ProviderID string `json:"providerID,omitempty"`

	// adopt is the token of a retained instance whose disks this machine takes over. It must not change.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="adopt must be a token as in status.retained: lower case letters, digits and dashes"
	Adopt string `json:"adopt,omitempty"`

	// decommission is the first of two steps of an end: the machine is emptied and switched off, and stays until it is deleted too.
	// +optional
	Decommission bool `json:"decommission,omitempty"`

	// paused stops every change, also a deletion. The status follows.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// MachineConfig is what machines of one kind have in common.
type MachineConfig struct {
	// versions of what runs on the machine. What is absent is the provider's choice.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.kubelet) || self.kubelet.matches('^v[0-9]+[.][0-9]+[.][0-9]+([-+.][-+.0-9A-Za-z]+)?$')",message="kubelet must be a version like v1.36.3"
	Versions *Versions `json:"versions,omitempty"`

	// roles are what the machine is for, as worker, control-plane or etcd.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Roles []string `json:"roles,omitempty"`

	// taints of the Node.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=64
	Taints []Taint `json:"taints,omitempty"`

	// nodeMetadata are labels and annotations of the Node.
	// +optional
	NodeMetadata *NodeMetadata `json:"nodeMetadata,omitempty"`

	// configSource is copied to the Node's NodeConfig. Absent means that nobody touches that.
	// +optional
	ConfigSource *configv1alpha1.NodeConfigSource `json:"configSource,omitempty"`

	// bootstrap is what the instance needs to join, as a token. It is no part of what a machine is: another Secret changes nothing on one that runs.
	// +optional
	Bootstrap *SecretSource `json:"bootstrap,omitempty"`

	// credentials are what the provider needs to be called.
	// +optional
	Credentials *SecretSource `json:"credentials,omitempty"`

	// providerConfig is the provider's own part. Nothing but the provider reads it, and nothing in it is changed or defaulted.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`

	// updatePolicy says which ways of an update may be taken. Absent means ProviderDecides.
	// +optional
	UpdatePolicy UpdatePolicy `json:"updatePolicy,omitempty"`

	// deletion says how the machine ends.
	// +optional
	Deletion *Deletion `json:"deletion,omitempty"`
}

// Versions of what runs on a machine.
type Versions struct {
	// kubelet is a version like v1.36.3.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Kubelet string `json:"kubelet,omitempty"`

	// runtime is the container runtime.
	// +optional
	Runtime *Runtime `json:"runtime,omitempty"`

	// other packages by name, as kernel.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Other map[string]string `json:"other,omitempty"`
}

// Runtime is a container runtime.
type Runtime struct {
	// name, as containerd.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// version, as 2.1.4.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`
}

// Taint is one of a Node.
type Taint struct {
	// key of the taint.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$`
	Key string `json:"key"`
	// value of the taint.
	// +optional
	Value LabelValue `json:"value,omitempty"`
	// effect on pods that don't tolerate it.
	// +required
	Effect TaintEffect `json:"effect"`
}

// LabelValue is the value of a label or a taint.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?)?$`
type LabelValue string

// TaintEffect is what a taint does to pods that don't tolerate it.
//
// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
type TaintEffect string

// NodeMetadata are labels and annotations of a Node. Others that it has are left alone.
type NodeMetadata struct {
	// labels of the Node.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// annotations of the Node.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	Annotations map[string]string `json:"annotations,omitempty"`
}

// SecretSource says where something secret stands.
type SecretSource struct {
	// secretRef names a Secret in the namespace of the Machine.
	// +required
	SecretRef SecretRef `json:"secretRef"`
}

// SecretRef names a Secret.
type SecretRef struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// UpdatePolicy says which ways of an update may be taken. ProviderDecides: that which the provider plans. InPlaceOnly: no replacement. ReplaceOnly: a
// replacement, also where the provider could update in place. Manual: none until the annotation machine.belay.dev/approve has the digest of the change.
//
// +kubebuilder:validation:Enum=ProviderDecides;InPlaceOnly;ReplaceOnly;Manual
type UpdatePolicy string

// Deletion says how a machine ends.
//
// +kubebuilder:validation:XValidation:rule="!has(self.retainFor) || !has(self.diskPolicy) || self.diskPolicy == 'Retain'",message="retainFor goes with diskPolicy: Retain only"
type Deletion struct {
	// drainTimeout bounds the drain; then the machine goes on without. Absent means that it waits for ever.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 1h, above 0; without one the drain has no limit"
	DrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`

	// nodeTimeout bounds how long an unreachable workload API holds up the release of an instance. Absent means "10m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 10m, above 0"
	NodeTimeout *metav1.Duration `json:"nodeTimeout,omitempty"`

	// diskPolicy is what becomes of disks. Absent means Retain.
	// +optional
	DiskPolicy DiskPolicy `json:"diskPolicy,omitempty"`

	// retainFor is how long retained disks are kept. Absent means for ever.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 720h, above 0; without one disks are kept for ever"
	RetainFor *metav1.Duration `json:"retainFor,omitempty"`

	// hooks are what has to happen first. Each holds up the end until its owner has taken it out of the list.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Hooks []Hook `json:"hooks,omitempty"`
}

// DiskPolicy is what becomes of disks. Retain: they are kept, and a Machine with spec.adopt can have them. Destroy: nothing stays.
//
// +kubebuilder:validation:Enum=Retain;Destroy
type DiskPolicy string

// Hook holds up the end of a machine until its owner has taken it out of the list.
type Hook struct {
	// name of the hook.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// owner is who takes it out of the list.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Owner string `json:"owner"`
	// phase is when it holds up the end.
	// +required
	Phase HookPhase `json:"phase"`
	// timeout bounds the wait. Absent means that it has no limit.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 10m, above 0; without one the hook has no limit"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// HookPhase is when a hook holds up the end. BeforeDrain: before the node is cordoned. BeforeStop: after the drain, as for taking the machine out of
// the member lists of its services.
//
// +kubebuilder:validation:Enum=BeforeDrain;BeforeStop
type HookPhase string

// MachineList is a list of Machines.
//
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}
