// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeConfigStatus is what a node reports about its config.
type NodeConfigStatus struct {
	// observedGeneration is the newest generation of the spec that the node acted upon.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// assigned is the config that was last adopted. It stays so after a rollback.
	// +optional
	Assigned *Config `json:"assigned,omitempty"`

	// active is the config in use.
	// +optional
	Active *Config `json:"active,omitempty"`

	// lastKnownGood is the config that a rollback goes to.
	// +optional
	LastKnownGood *Config `json:"lastKnownGood,omitempty"`

	// rejected lists configs that the node won't use, newest first. Older ones may be left out here, and are still refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Rejected []RejectedConfig `json:"rejected,omitempty"`

	// trial says how far the active config has come on its way to being known good. Absent when it isn't on trial.
	// +optional
	Trial *Trial `json:"trial,omitempty"`

	// error is the last trouble in finding or fetching the wanted config. Absent when there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Error string `json:"error,omitempty"`

	// alarm says that nothing is left to fall back to: a person must look. Absent otherwise.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Alarm string `json:"alarm,omitempty"`

	// conditions hold ConfigOK, the summary.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Config is one config: either a local one or an entry of a ConfigMap.
type Config struct {
	// display names the config for people: "namespace/name", or "local (init)".
	// +required
	// +kubebuilder:validation:MaxLength=512
	Display string `json:"display"`

	// local says what the local config is: init or default. Absent for a config from the API server.
	// +optional
	Local Local `json:"local,omitempty"`

	// configMapRef names the version that was resolved. Absent for a local config.
	// +optional
	ConfigMapRef *ResolvedConfigMapRef `json:"configMapRef,omitempty"`
}

// Local says what the local config of a node is.
//
// +kubebuilder:validation:Enum=init;default
type Local string

// The local configs.
const (
	// LocalInit is the init config that the node was provisioned with.
	LocalInit Local = "init"
	// LocalDefault is what is built into the agent.
	LocalDefault Local = "default"
)

// ResolvedConfigMapRef is one version of a ConfigMap. The uid, key and digest identify it.
type ResolvedConfigMapRef struct {
	// namespace of the ConfigMap.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`
	// name of the ConfigMap.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// uid of the ConfigMap.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	UID string `json:"uid,omitempty"`
	// resourceVersion of the ConfigMap when it was fetched.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// key is the entry of the data that holds the config.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
	// digest of the data.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Digest string `json:"digest,omitempty"`
}

// RejectedConfig is a config that a node won't use until the entry is removed on the node.
type RejectedConfig struct {
	ResolvedConfigMapRef `json:",inline"`
	// time at which the config was rejected, by the node's clock.
	// +optional
	Time metav1.Time `json:"time,omitzero"`
	// reason for which it was rejected.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Reason string `json:"reason,omitempty"`
	// evidence is what the reason rests on.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Evidence string `json:"evidence,omitempty"`
}

// Trial says how far a config has come on its way to being known good.
type Trial struct {
	// since is when the config was adopted, by the node's clock.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
	// neededSeconds of healthy running are asked for.
	NeededSeconds int64 `json:"neededSeconds"`
	// healthySeconds were gathered, rounded down to a tenth of those needed so that a trial costs few writes.
	HealthySeconds int64 `json:"healthySeconds"`
	// countedStarts speak against the config.
	CountedStarts int32 `json:"countedStarts"`
	// allowedStarts is how many may; one more, and the config is rejected.
	AllowedStarts int32 `json:"allowedStarts"`
	// ignored says of starts during the trial that don't count why they don't. Older ones may be left out.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=1024
	Ignored []string `json:"ignored,omitempty"`
	// failing names the probes that fail, with their errors.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=1024
	Failing []string `json:"failing,omitempty"`
}

// ConditionConfigOK is the type of the condition that sums up a status. Its message is the effect and the cause in words, its reason one
// of the Reason constants.
const ConditionConfigOK = "ConfigOK"

// The reasons of [ConditionConfigOK].
const (
	// ReasonUsingCurrent comes with True: the wanted config is in use and known to be good.
	ReasonUsingCurrent = "UsingCurrent"
	// ReasonOnTrial comes with True: the wanted config is in use and hasn't proved itself yet.
	ReasonOnTrial = "OnTrial"
	// ReasonUsingLocal comes with True: no source is set, and the local config is in use.
	ReasonUsingLocal = "UsingLocal"
	// ReasonDesiredUnclear comes with Unknown: the wanted config can't be found out, fetched or loaded.
	ReasonDesiredUnclear = "DesiredUnclear"
	// ReasonRejected comes with False: the wanted config was found bad, and another is in use.
	ReasonRejected = "Rejected"
	// ReasonAlarm comes with any status: nothing is left to fall back to.
	ReasonAlarm = "Alarm"
)
