// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ImperativeEvictor is the name of the default responder. It evicts a pod through the subresource pods/eviction, with
// a back-off.
const ImperativeEvictor = "imperative-eviction.k8s.io/evictor"

// ImperativeEvictorPriority is the priority of the default responder. It is the lowest that the API server accepts.
const ImperativeEvictorPriority = 100

// The intents of a requester.
const (
	IntentEviction  = "Eviction"
	IntentWithdrawn = "Withdrawn"
)

// The states of a responder.
const (
	StateInactive    = "Inactive"
	StateActive      = "Active"
	StateInterrupted = "Interrupted"
	StateCanceled    = "Canceled"
	StateCompleted   = "Completed"
)

// The conditions of an EvictionRequest and of an Eviction.
const (
	ConditionFailed        = "Failed"
	ConditionTargetEvicted = "TargetEvicted"
)

// The reasons of the conditions.
const (
	ReasonAwaitingEviction          = "AwaitingEviction"          // of both
	ReasonEvictionInvalid           = "EvictionInvalid"           // of Failed
	ReasonCanceledDueToNoRequesters = "CanceledDueToNoRequesters" // of Failed
	ReasonSucceeded                 = "Succeeded"                 // of Failed
	ReasonNoFurtherResponder        = "NoFurtherResponder"        // of Failed
	ReasonPodDeleted                = "PodDeleted"                // of TargetEvicted
	ReasonPodTerminal               = "PodTerminal"               // of TargetEvicted
	ReasonEvictionFailed            = "EvictionFailed"            // of TargetEvicted
)

// The roles that the labels of an Eviction give to requesters and responders. The label's key is the name of either.
const (
	RoleRequester          = "requester"
	RoleResponder          = "responder"
	RoleRequesterResponder = "requester-responder"
)

// EvictionRequest asks for the eviction of one pod in the name of one requester.
type EvictionRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EvictionRequestSpec   `json:"spec"`
	Status EvictionRequestStatus `json:"status,omitempty"`
}

// EvictionRequestSpec is what a requester wants. Target and Requester are immutable.
type EvictionRequestSpec struct {
	Target    Target `json:"target"`
	Requester string `json:"requester"` // a domain-prefixed key such as acme.io/foo
	Intent    string `json:"intent"`
}

// Target is what is evicted. A target without a pod is of a kind that this library does not know.
type Target struct {
	Pod *PodReference `json:"pod,omitempty"`
}

// PodReference names a pod of the same namespace.
type PodReference struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// EvictionRequestStatus is what the evictionrequest-controller says about an EvictionRequest.
type EvictionRequestStatus struct {
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	ObservedGeneration *int64             `json:"observedGeneration,omitempty"`
}

// Eviction is the eviction of one target for all of its requesters.
type Eviction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EvictionSpec   `json:"spec"`
	Status EvictionStatus `json:"status,omitempty"`
}

// EvictionSpec names the target. It is immutable.
type EvictionSpec struct {
	Target Target `json:"target"`
}

// EvictionStatus is written by the evictionrequest-controller, and each of Responders by its Active responder.
type EvictionStatus struct {
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	ObservedGeneration *int64             `json:"observedGeneration,omitempty"`
	Requesters         []Requester        `json:"requesters,omitempty"`
	TargetResponders   []TargetResponder  `json:"targetResponders,omitempty"`
	Responders         []ResponderStatus  `json:"responders,omitempty"`
}

// Requester is one of the requesters of an Eviction, with its intent.
type Requester struct {
	Name   string `json:"name"`
	Intent string `json:"intent"`
}

// TargetResponder is a responder with the state that the evictionrequest-controller assigns to it.
type TargetResponder struct {
	Name     string `json:"name"`
	Priority *int32 `json:"priority"`
	State    string `json:"state"`
}

// ResponderStatus is the progress of a responder. Its times have whole seconds.
type ResponderStatus struct {
	Name                   string       `json:"name"`
	StartTime              *metav1.Time `json:"startTime,omitempty"`
	HeartbeatTime          *metav1.Time `json:"heartbeatTime,omitempty"`
	ExpectedCompletionTime *metav1.Time `json:"expectedCompletionTime,omitempty"`
	CompletionTime         *metav1.Time `json:"completionTime,omitempty"`
	Message                *string      `json:"message,omitempty"` // at most 4000 characters
}

// PodResponder is one of a pod's spec.evictionResponders.
type PodResponder struct {
	Name     string `json:"name"`
	Priority *int32 `json:"priority"`
}
