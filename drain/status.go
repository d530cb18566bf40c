// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Phase is how far a request has come.
type Phase string

// The phases of a node.
const (
	Pending   Phase = "Pending"   // nothing has been written yet; Reason says what it waits for
	Cordoned  Phase = "Cordoned"  // closed to new pods; mode Cordon ends here
	Draining  Phase = "Draining"  // pods are leaving, or are blocked
	Paused    Phase = "Paused"    // no eviction starts; Reason says why
	Settling  Phase = "Settling"  // empty; watched for latecomers and volumes
	Drained   Phase = "Drained"   // done, latched
	Holding   Phase = "Holding"   // the Lease is renewed
	HoldEnded Phase = "HoldEnded" // the Lease is renewed no more
	Soak      Phase = "Soaking"   // released, and watched
	Released  Phase = "Released"  // nothing of this holder is left on the node
	Failed    Phase = "Failed"    // cannot be done; nothing of this maintenance is left on the node
)

// An Outcome is the result of a drain, for those who count. It is empty while the drain can still go on by itself.
type Outcome string

// The outcomes.
const (
	OutcomeDrained Outcome = "Drained" // by evictions alone, as far as this process, the mark and Last know
	OutcomeForced  Outcome = "Forced"  // drained, and at least one pod was deleted past its budget
	OutcomeBlocked Outcome = "Blocked" // at least one pod stays until somebody acts, or the deadline has passed
	OutcomeFailed  Outcome = "Failed"  // cannot be done: the node is gone or another one, or a preflight stops it
)

// A Status is what one pass found and did. It is data: callers keep it in their own resource.
type Status struct {
	Node        string    `json:"node"`
	NodeUID     types.UID `json:"nodeUID,omitempty"`
	Holder      string    `json:"holder"`
	Maintenance string    `json:"maintenance,omitempty"`
	Mode        Mode      `json:"mode"`

	Phase   Phase   `json:"phase"`
	Outcome Outcome `json:"outcome,omitempty"`
	Reason  Reason  `json:"reason,omitempty"`
	Message string  `json:"message,omitempty"`

	// Started is when the node was cordoned for this maintenance, Finished when it was drained; both from the mark.
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`

	Counts Counts `json:"counts"`
	// Blockers are the pods that have not left and why, the longest blocked first.
	Blockers []Blocker `json:"blockers,omitempty"`
	// Evicted lists the pods of which the server has accepted the eviction since the drain began, as far as this process and Last know.
	Evicted []PodRef `json:"evicted,omitempty"`
	// Forced lists those among them that were deleted past their budget.
	Forced []PodRef `json:"forced,omitempty"`
	// Attached lists volumes that are still attached, with the pods that used them.
	Attached []Attached `json:"attached,omitempty"`
}

// Counts are numbers of pods on the node.
type Counts struct {
	Remaining   int `json:"remaining"`   // have to leave and are still there: the sum of the next four
	Evictable   int `json:"evictable"`   // can leave now
	Waiting     int `json:"waiting"`     // leave by themselves, or when something else has happened
	Blocked     int `json:"blocked"`     // somebody has to act
	Terminating int `json:"terminating"` // have been asked to leave
	Skipped     int `json:"skipped"`     // are not waited for, and stay on a drained node: the sum of the next five
	Evicted     int `json:"evicted"`     // evictions accepted since the drain began, as in [Status].Evicted

	DaemonSet  int `json:"daemonSet,omitempty"`  // pods of DaemonSets
	Static     int `json:"static,omitempty"`     // mirror pods of the kubelet's static pods
	Finished   int `json:"finished,omitempty"`   // have succeeded or failed
	Tolerating int `json:"tolerating,omitempty"` // tolerate the cordon, and the policy leaves them, or they came back
	ByRule     int `json:"byRule,omitempty"`     // a rule or their label says so
}

// A Blocker is a pod that has not left.
type Blocker struct {
	PodRef  `json:",inline"`
	Action  Action   `json:"action"`
	Reason  Reason   `json:"reason"`
	Message string   `json:"message"`
	Budgets []string `json:"budgets,omitempty"` // names in the pod's namespace
	Hook    string   `json:"hook,omitempty"`    // the responder whose turn it is, known or not
	// Since is when this reason was first seen.
	Since time.Time `json:"since,omitzero"`
	// Next is what will be done next, without anybody acting, and NextAt when. Empty: nothing.
	Next   Step      `json:"next,omitempty"`
	NextAt time.Time `json:"nextAt,omitzero"`
}

// Attached is a volume that is still attached to the node.
type Attached struct {
	Volume string   `json:"volume"` // name of the PersistentVolume
	Pods   []PodRef `json:"pods,omitempty"`
}
