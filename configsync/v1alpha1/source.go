// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// NodeConfigSource says where a config comes from. Exactly one subfield must be set.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMapRef)",message="exactly one subfield must be non-nil, but all were nil; set configMapRef, or leave out the source for the local config"
type NodeConfigSource struct {
	// configMapRef names an entry of a ConfigMap.
	// +optional
	ConfigMapRef *ConfigMapRef `json:"configMapRef,omitempty"`
}

// ConfigMapRef names an entry of a ConfigMap so that it can't silently come to mean another content: by uid, by digest, or with the
// policy Follow, which allows it.
//
// +kubebuilder:validation:XValidation:rule="has(self.uid) || has(self.digest) || (has(self.policy) && self.policy == 'Follow')",message="must have a uid or a digest, or the policy Follow: a name alone may come to mean another object"
type ConfigMapRef struct {
	// kind is the kind of the object: ConfigMap, which is also meant where it is absent.
	// +optional
	// +kubebuilder:validation:Enum=ConfigMap
	Kind string `json:"kind,omitempty"`

	// namespace of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace"`

	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// uid of the ConfigMap. With a uid, an object that was deleted and created again under the same name is refused.
	// +optional
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!self.contains('..')",message="must be usable as a file name: no dots in a row"
	UID string `json:"uid,omitempty"`

	// key is the entry of the ConfigMap's data that holds the config. Where it is absent, the agent's own default is meant.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +kubebuilder:validation:XValidation:rule="self != '.' && !self.startsWith('..')",message="must be a key that a ConfigMap can have"
	Key string `json:"key,omitempty"`

	// digest of the ConfigMap's data: "sha256:" and 64 hexadecimal digits in lower case. With a digest, any other content is refused,
	// whatever the uid, and the reference can be written before the object exists.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[a-f0-9]{64}$`
	Digest string `json:"digest,omitempty"`

	// policy says what an edit of the ConfigMap in place means. Pin, which is also meant where it is absent: nothing; the ConfigMap must
	// be immutable, or the reference must have a digest. Follow: the node adopts the edit, after a random delay.
	// +optional
	Policy Policy `json:"policy,omitempty"`
}

// Policy says what an edit of a source object in place means.
//
// +kubebuilder:validation:Enum=Pin;Follow
type Policy string

// The policies.
const (
	// PolicyPin keeps what was adopted until the source names something else.
	PolicyPin Policy = "Pin"
	// PolicyFollow adopts edits made in place.
	PolicyFollow Policy = "Follow"
)
