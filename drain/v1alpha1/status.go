// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The types of conditions, after kstatus. All are there from the first status on.
const (
	// ConditionReady: every node has come as far as the mode goes. kubectl wait --for=condition=Ready waits for it.
	ConditionReady = "Ready"
	// ConditionReconciling: it goes on by itself: pods leave, or a window is waited for.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: it does not go on unless a person acts. The reason is Invalid, DeadlinePassed, HoldEnded,
	// NoNodes, PodsBlocked, or that of a node that has failed, such as NodeNotFound.
	ConditionStalled = "Stalled"
)

// The bounds of lists in a status.
const (
	MaxNodes       = 100
	MaxBlockedPods = 20
)

// Phase is how far a maintenance has come.
//
//	Waiting    nothing was written: no window is open
//	Running    nodes are being closed or emptied
//	Blocked    no node goes on until a person acts
//	Ready      every node has come as far as the mode goes
//	Stopped    the deadline has passed: cordons stay, nothing more is evicted, a hold is over
//	Invalid    spec cannot be carried out as it is
//	Releasing  it is being deleted, and nodes are given back
//
// +kubebuilder:validation:Enum=Waiting;Running;Blocked;Ready;Stopped;Invalid;Releasing
type Phase string

// The phases.
const (
	PhaseWaiting   Phase = "Waiting"
	PhaseRunning   Phase = "Running"
	PhaseBlocked   Phase = "Blocked"
	PhaseReady     Phase = "Ready"
	PhaseStopped   Phase = "Stopped"
	PhaseInvalid   Phase = "Invalid"
	PhaseReleasing Phase = "Releasing"
)

// NodeMaintenanceStatus is how far a maintenance has come.
type NodeMaintenanceStatus struct {
	// observedGeneration is that of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is how far it has come.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// message says what it waits for.
	// +optional
	Message string `json:"message,omitempty"`

	// totalNodes is how many nodes it is about, also of those that nodes does not list.
	// +optional
	TotalNodes int32 `json:"totalNodes"`

	// readyNodes have come as far as the mode goes.
	// +optional
	ReadyNodes int32 `json:"readyNodes"`

	// failedNodes can't, or are past the deadline.
	// +optional
	FailedNodes int32 `json:"failedNodes"`

	// nodes are the first 100 of them, those that are not ready before the others.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Nodes []NodeResult `json:"nodes,omitempty"`

	// preview is what a drain still does, before its beginning too.
	// +optional
	Preview *Preview `json:"preview,omitempty"`

	// conditions are Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodeResult is how one node stands.
type NodeResult struct {
	// name of the Node.
	// +required
	Name string `json:"name"`
	// uid of the Node.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// phase is that of drain.Status: Pending, Cordoned, Draining, Paused, Settling, Drained, Holding, HoldEnded or
	// Failed.
	// +required
	Phase string `json:"phase"`
	// reason is why it stands there, as in drain.Reason.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says it to people.
	// +optional
	Message string `json:"message,omitempty"`
	// remaining pods have to leave and are still there.
	// +optional
	Remaining int32 `json:"remaining"`
	// blocked pods are those of them for which a person must act.
	// +optional
	Blocked int32 `json:"blocked"`
	// evicted is how many evictions the API server has accepted, as far as the controller has seen them.
	// +optional
	Evicted int32 `json:"evicted"`
}

// Preview is what a drain still does with the pods of all nodes.
type Preview struct {
	// evictions are the pods that can be evicted now.
	// +optional
	Evictions int32 `json:"evictions"`
	// waiting pods leave when something else has happened, or are ending.
	// +optional
	Waiting int32 `json:"waiting"`
	// blocked pods stay until a person acts.
	// +optional
	Blocked int32 `json:"blocked"`
	// stays is how many pods are not waited for: those of DaemonSets, static and finished ones.
	// +optional
	Stays int32 `json:"stays"`
	// blockedPods are the first 20 of the blocked ones.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	BlockedPods []BlockedPod `json:"blockedPods,omitempty"`
}

// BlockedPod is a pod that stays until a person acts.
type BlockedPod struct {
	// namespace of the pod.
	// +required
	Namespace string `json:"namespace"`
	// name of the pod.
	// +required
	Name string `json:"name"`
	// node that it is on.
	// +required
	Node string `json:"node"`
	// reason is why, as in drain.Reason.
	// +required
	Reason string `json:"reason"`
	// message says it to people, with the budget, if it is one.
	// +optional
	Message string `json:"message,omitempty"`
}
