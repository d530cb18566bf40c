// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configsync "github.com/belayproject/belay/configsync/v1alpha1"
)

// Revision is something that nodes are brought to. It never changes: what is to be rolled out next is another Revision.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=belay
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.class`,description="How much it disturbs a node"
// +kubebuilder:printcolumn:name="Irreversible",type=boolean,JSONPath=`.spec.irreversible`,description="Whether no node goes back from it"
// +kubebuilder:printcolumn:name="Min-Age",type=string,JSONPath=`.spec.minAge`,description="Age that it must have before a node gets it"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="ConfigMap",type=string,JSONPath=`.spec.configMapRef.name`,description="ConfigMap that holds the config"
// +kubebuilder:printcolumn:name="Opaque",type=string,priority=1,JSONPath=`.spec.opaque`,description="What the hook is told"
// +kubebuilder:printcolumn:name="Digest",type=string,priority=1,JSONPath=`.spec.digest`,description="Digest of the content"
//
// +kubebuilder:validation:XValidation:rule="self.spec == oldSelf.spec",message="a revision is immutable: create another one, and roll that out"
type Revision struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the content. It must not change.
	// +required
	Spec RevisionSpec `json:"spec"`
}

// RevisionSpec is the content of a revision. Exactly one of configMapRef and opaque must be set.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMapRef) != has(self.opaque)",message="exactly one of configMapRef and opaque must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.configMapRef) || (has(self.configMapRef.digest) && self.configMapRef.digest == self.digest)",message="configMapRef must have the digest of the revision"
// +kubebuilder:validation:XValidation:rule="!has(self.configMapRef) || !has(self.configMapRef.policy) || self.configMapRef.policy == 'Pin'",message="configMapRef must not have the policy Follow: a revision never changes"
type RevisionSpec struct {
	// digest of the content: "sha256:" and 64 hexadecimal digits in lower case. Of a config it is the digest of the ConfigMap's data, as in
	// configMapRef, otherwise that of the bytes of opaque.
	// +required
	// +kubebuilder:validation:Pattern=`^sha256:[a-f0-9]{64}$`
	Digest string `json:"digest"`

	// class is how much the revision disturbs a node. Absent means Intrusive.
	// +optional
	Class Class `json:"class,omitempty"`

	// irreversible: no node goes back from it.
	// +optional
	Irreversible bool `json:"irreversible,omitempty"`

	// minAge is how old the revision must be before a node gets it, for example "24h".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 90m, and not negative"
	MinAge *metav1.Duration `json:"minAge,omitempty"`

	// configMapRef names the config that a node is brought to.
	// +optional
	ConfigMapRef *configsync.ConfigMapRef `json:"configMapRef,omitempty"`

	// opaque is what the node's hook is told, for example the version or the image of an operating system. It means nothing to anybody else.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Opaque string `json:"opaque,omitempty"`
}

// Class is how much a revision disturbs a node. Intrusive: it is cordoned and drained first. NonIntrusive: its work stays.
//
// +kubebuilder:validation:Enum=Intrusive;NonIntrusive
type Class string

// RevisionList is a list of Revisions.
//
// +kubebuilder:object:root=true
type RevisionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Revision `json:"items"`
}
