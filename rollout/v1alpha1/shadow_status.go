// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configsync "github.com/belayproject/belay/configsync/v1alpha1"
)

// NodeShadowStatus is what the agent says of its node. Nobody else writes it.
type NodeShadowStatus struct {
	// known says that the agent has written this status, from its own disk. Until then nobody knows what became of the attempts that a
	// shadow of this node had before.
	// +optional
	// +kubebuilder:default=false
	Known bool `json:"known,omitempty"`

	// attempt is the last one that the agent has committed or refused.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	Attempt int64 `json:"attempt,omitempty"`

	// phase is how far that attempt is. The last one of an attempt is its outcome.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// revision is what that attempt brings, as it was ordered at the time of the commit.
	// +optional
	Revision *RevisionRef `json:"revision,omitempty"`

	// broken says that the node was broken when the attempt was committed: to give it up leaves it so.
	// +optional
	// +kubebuilder:default=false
	Broken bool `json:"broken,omitempty"`

	// staged is the revision that was fetched ahead.
	// +optional
	Staged *RevisionRef `json:"staged,omitempty"`

	// current is the revision that the node runs. Absent while that is not known, or between two of them.
	// +optional
	Current *RevisionRef `json:"current,omitempty"`

	// previous is the revision that the node could go back to.
	// +optional
	Previous *RevisionRef `json:"previous,omitempty"`

	// revertible says that there is a way back from the current revision.
	// +optional
	Revertible bool `json:"revertible,omitempty"`

	// from is the revision that the node ran, and well, before the attempt.
	// +optional
	From *RevisionRef `json:"from,omitempty"`

	// disruption is what the attempt takes from the node. Absent where that is not known, which stands for the worst.
	// +optional
	Disruption Disruption `json:"disruption,omitempty"`

	// bootID names the boot of the node.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	BootID string `json:"bootID,omitempty"`

	// reason says in one word why the attempt is where it is.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// message says it in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`

	// config is what the node says of its config, where revisions are configs.
	// +optional
	Config *configsync.NodeConfigStatus `json:"config,omitempty"`

	// conditions hold AtRest, so that one can wait for it.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Phase is how far an agent is with an attempt.
//
// +kubebuilder:validation:Enum=Refused;Committed;Undone;Applying;Verifying;Done;FailedClean;FailedBroken
type Phase string

// Disruption is what an attempt takes from a node, from the least on.
//
// +kubebuilder:validation:Enum=None;Restart;Drain;Reboot
type Disruption string

// ConditionAtRest is the type of the condition that says whether the node is not disrupted by a rollout: it was not touched, or it is well
// again. Its reason is the phase, [ReasonUntouched] or [ReasonUnknown], its message that of the status.
const ConditionAtRest = "AtRest"

// The reasons of [ConditionAtRest] besides the phases.
const (
	// ReasonUntouched comes with True: the node has answered no attempt.
	ReasonUntouched = "Untouched"
	// ReasonUnknown comes with Unknown: the shadow is new, and the agent has not spoken.
	ReasonUnknown = "Unknown"
)
