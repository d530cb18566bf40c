// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// How much a status holds; [StatusOf] leaves out what is least important.
const (
	// MaxNodeReasons is of how many nodes a status says why they wait or fail.
	MaxNodeReasons = 100
	// MaxWaiting is how many reasons for waiting it counts.
	MaxWaiting = 8
	// DefaultHistoryLimit is how many entries a history has if the spec does not say.
	DefaultHistoryLimit = 10
	// MaxFailedNodes is how many nodes an entry of the history names.
	MaxFailedNodes = 16
)

// RolloutStatus says where a rollout stands. At 5,000 nodes it takes about 300 KiB, see the package comment.
type RolloutStatus struct {
	// observedGeneration is that of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is where the rollout stands.
	// +optional
	Phase RolloutPhase `json:"phase,omitempty"`

	// reason says in one word why it stands there.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// message says it in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`

	// revision is what the nodes are brought to: that of the spec, unless somebody has gone back to another one.
	// +optional
	Revision *PinnedRevision `json:"revision,omitempty"`

	// done is how many nodes run their revision, of those that are selected: "12/100".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Done string `json:"done,omitempty"`

	// failed is how many nodes have failed: counts.failed, counts.broken and counts.lost.
	// +optional
	Failed int64 `json:"failed,omitempty"`

	// counts has each selected node once, besides selected.
	// +optional
	Counts *RolloutCounts `json:"counts,omitempty"`

	// waiting are the most frequent reasons for which nodes wait, the first one first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Waiting []WaitingFor `json:"waiting,omitempty"`

	// stage is the stage under way. Absent when all are passed.
	// +optional
	Stage *StageStatus `json:"stage,omitempty"`

	// handledRequest is the last request of spec.verb that was looked at.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	HandledRequest string `json:"handledRequest,omitempty"`

	// refusal says why that request was not carried out. Absent if it was.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Refusal string `json:"refusal,omitempty"`

	// acknowledged: no node of the rollout is begun until somebody opens it again, by what the ledger and every node have said. It proves a pause,
	// an abort and a freeze.
	// +optional
	Acknowledged bool `json:"acknowledged,omitempty"`

	// worstCase is what a fatal revision can do until the rollout stops by itself.
	// +optional
	WorstCase *WorstCase `json:"worstCase,omitempty"`

	// expectedEnd is when all nodes should have had their turn. It is an estimate, and not moved for little.
	// +optional
	ExpectedEnd *metav1.Time `json:"expectedEnd,omitempty"`

	// nodes are those of which there is something to say, the most important ones first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Nodes []NodeReason `json:"nodes,omitempty"`

	// nodesOmitted is of how many more nodes there would be something to say.
	// +optional
	NodesOmitted int64 `json:"nodesOmitted,omitempty"`

	// history are the revisions that the rollout was about, the present one last.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	History []HistoryEntry `json:"history,omitempty"`

	// completed is what a rollout was completed with last: nodes that join meanwhile get it first.
	// +optional
	Completed *RolloutTargets `json:"completed,omitempty"`

	// rollback is what somebody has gone back to. It ends when the spec names other revisions.
	// +optional
	Rollback *RollbackStatus `json:"rollback,omitempty"`

	// progress is what the controller remembers. It must not be edited.
	// +optional
	Progress *RolloutProgress `json:"progress,omitempty"`

	// conditions are those named Condition... in the package.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RolloutPhase is where a rollout stands.
//
// +kubebuilder:validation:Enum=Pending;Running;AtGate;Paused;Frozen;Aborting;Aborted;Completed
type RolloutPhase string

// RolloutCounts are numbers of nodes.
type RolloutCounts struct {
	// selected are all nodes of the rollout.
	Selected int64 `json:"selected"`
	// done run their revision.
	Done int64 `json:"done"`
	// inFlight may be disrupted now.
	InFlight int64 `json:"inFlight"`
	// waiting wait for others.
	Waiting int64 `json:"waiting"`
	// deferred wait for themselves: they are unhealthy, away, or have refused.
	Deferred int64 `json:"deferred"`
	// failed have fallen back to what they ran before.
	Failed int64 `json:"failed"`
	// broken are disrupted, and broken or suspect.
	Broken int64 `json:"broken"`
	// lost are disrupted, and somebody has given their capacity up.
	Lost int64 `json:"lost"`
}

// WaitingFor is how many nodes wait for the same reason.
type WaitingFor struct {
	// reason is one word, for example "Cap" or "WindowClosed".
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`
	// count is how many nodes wait for it.
	Count int64 `json:"count"`
}

// StageStatus is the stage under way.
type StageStatus struct {
	// name of the stage.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// number of the stage, from 1 on.
	Number int64 `json:"number"`
	// of is how many stages there are.
	Of int64 `json:"of"`
	// soaksUntil is when it has soaked.
	// +optional
	SoaksUntil *metav1.Time `json:"soaksUntil,omitempty"`
}

// WorstCase is what a fatal revision can do until the rollout stops by itself.
type WorstCase struct {
	// nodes are those of all stages.
	Nodes int64 `json:"nodes"`
	// broken is how many of them can be broken in all.
	Broken int64 `json:"broken"`
	// message says it in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
	// stages are the worst cases by stage, in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Stages []StageWorstCase `json:"stages,omitempty"`
}

// StageWorstCase is the worst that there is when a stage is over, or the rollout has stopped in it.
type StageWorstCase struct {
	// stage is its name.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Stage string `json:"stage,omitempty"`
	// broken is how many nodes are broken then, those of earlier stages included.
	Broken int64 `json:"broken"`
	// failures is how many of them are seen before nothing more is begun.
	Failures int64 `json:"failures"`
	// detector is what trips then. Absent if nothing does.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Detector string `json:"detector,omitempty"`
}

// NodeReason says why a node waits, or how it fares.
type NodeReason struct {
	// node is the name of the Node.
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// state is where it stands.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	State string `json:"state,omitempty"`
	// reason says in one word why it is there.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`
	// message says it in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// RolloutTargets are the revisions that a rollout is about.
type RolloutTargets struct {
	// revision is what all nodes get, but for groups that have their own.
	Revision PinnedRevision `json:"revision"`
	// groups are those that have their own.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Groups []GroupRevision `json:"groups,omitempty"`
}

// GroupRevision is the revision of a group.
type GroupRevision struct {
	// name of the group.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// revision is what its nodes get.
	Revision PinnedRevision `json:"revision"`
}

// HistoryEntry is one revision, or one set of them, that a rollout was about.
type HistoryEntry struct {
	// number of the entry. Each new one has the next, from 1 on; the verb Rollback takes it.
	Number int64 `json:"number"`

	// what the nodes were to get.
	RolloutTargets `json:",inline"`

	// by is who asked for it, as far as that is known: the annotation belay.dev/requested-by, or else the field manager that has written it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`

	// rollbackTo is the entry that it goes back to, if it does.
	// +optional
	RollbackTo int64 `json:"rollbackTo,omitempty"`

	// started is when it began.
	Started metav1.Time `json:"started"`

	// ended is when it was completed or superseded.
	// +optional
	Ended *metav1.Time `json:"ended,omitempty"`

	// result is how it ended. Absent before.
	// +optional
	Result HistoryResult `json:"result,omitempty"`

	// begun says that a node was begun, or ran it already.
	// +optional
	Begun bool `json:"begun,omitempty"`

	// irreversible says that one of its revisions can't be gone back from.
	// +optional
	Irreversible bool `json:"irreversible,omitempty"`

	// counts are those when it was under way last.
	// +optional
	Counts *RolloutCounts `json:"counts,omitempty"`

	// failedNodes are names of nodes on which it has failed: the first by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	FailedNodes []string `json:"failedNodes,omitempty"`
}

// HistoryResult is how an entry ended. Completed: all nodes had their turn. Superseded: others took its place before.
//
// +kubebuilder:validation:Enum=Completed;Superseded
type HistoryResult string

// The results of entries.
const (
	HistoryCompleted  HistoryResult = "Completed"
	HistorySuperseded HistoryResult = "Superseded"
)

// RollbackStatus is what somebody has gone back to.
type RollbackStatus struct {
	// number of the entry.
	Number int64 `json:"number"`
	// what the nodes get instead of what the spec says.
	RolloutTargets `json:",inline"`
	// over is what the spec said then: it goes on as long as the spec says the same.
	Over RolloutTargets `json:"over"`
}
