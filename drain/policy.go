// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Policy says how the pods of a node are treated. It is data, to be a part of the caller's own resource too; in JSON, durations are strings,
// "10m", and nothing else. The zero value evicts what a controller will replace and what keeps no data on the node, and leaves
// everything else, with a reason. A CRD that is generated with it says no more than that it is an object: [Policy.Validate] checks the rest.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type Policy struct {
	// Rules are asked in order, the first that matches a pod decides. What none matches is decided by the pod's own
	// label drain.belay.dev/behavior, then by the fields below.
	Rules []Rule `json:"rules,omitempty"`
	// IgnorePodLabels leaves that label, [HookAnnotation] and what a [PodResponder] finds on pods without effect.
	IgnorePodLabels bool `json:"ignorePodLabels,omitempty"`

	// DaemonSets says what happens to pods of DaemonSets: Skip (default), or Last, to evict them after everything else. Last needs a
	// taint that they don't tolerate, or they come back: see Reason Bounced.
	DaemonSets Treatment `json:"daemonSets,omitempty"`
	// LocalData says what happens to pods with emptyDir volumes: Block (default) or Evict, which loses that data. A pod whose
	// emptyDir volumes are all limited to LocalDataLimit bytes in sum leaves under Block too.
	LocalData      Treatment `json:"localData,omitempty"`
	LocalDataLimit int64     `json:"localDataLimit,omitempty"`
	// Unmanaged says what happens to pods that no controller will create again: Block (default) or Evict.
	Unmanaged Treatment `json:"unmanaged,omitempty"`
	// Tolerating says what happens to pods that tolerate the cordon: Evict (default), as kubectl does, or Skip. A scheduler
	// may put them on the node again: pods whose owner's came back twice are left, with the Reason Bounced. A taint
	// that they do not tolerate keeps them away.
	Tolerating Treatment `json:"tolerating,omitempty"`
	// DeleteFinished deletes pods that have succeeded or failed. By default they stay: they hold nothing on the node.
	DeleteFinished bool `json:"deleteFinished,omitempty"`

	// GracePeriodSeconds overrides the pods' own grace period. At least 1; nil means the pod's own.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// TierDeadline is how long a tier may hold up the next one, counted from the start of the drain: tier n may wait until (n+1) times
	// this, in order of the tiers that the policy has: those of its rules, and 0. Zero means for as long as it takes.
	TierDeadline time.Duration `json:"tierDeadline,omitempty"`
	// Settle is how long a node is watched for pods that a scheduler binds late, from its cordon or from the last one
	// that came. An empty node counts as drained after it. Nil means 5 s, or 0.5 s if the [Cache] shows that no pod
	// waits to be bound.
	Settle *time.Duration `json:"settle,omitempty"`
	// Escalation is the ladder for pods that do not leave. Empty means that eviction is all that is ever done.
	Escalation []Escalation `json:"escalation,omitempty"`
	// Volumes waits, after the last pod, until the volumes of the pods that left are detached. VolumeDeadline ends that wait; zero
	// means no end. A node whose kubelet is unreachable is not waited for.
	Volumes        bool          `json:"volumes,omitempty"`
	VolumeDeadline time.Duration `json:"volumeDeadline,omitempty"`

	// RequireHealthy puts a drain off, without a write, until every pod of the node that would leave is ready.
	RequireHealthy bool `json:"requireHealthy,omitempty"`
	// Removal says that the node will not come back. Local data, the last replica on a node-local volume and quorum members then stop
	// the drain before the cordon, each by name, unless a rule or Removal itself allows them.
	Removal *Removal `json:"removal,omitempty"`
	// Windows are the times in which evictions may start; empty means always. OutsideWindow says what happens to the cordon meanwhile:
	// Hold (default) keeps it, Undo releases it until the next window.
	Windows       []Window         `json:"windows,omitempty"`
	OutsideWindow WindowTreatment  `json:"outsideWindow,omitempty"`
	Uncordoned    UncordonResponse `json:"uncordoned,omitempty"`
	// Soak is how long a released node is watched. A pod on it that is not ready at the end of Soak, or that crash-loops during
	// it, freezes the holder's whole fleet until [Drainer.Resume], or until that Node is deleted. Only a node that was drained is
	// watched. Zero means no watch.
	Soak time.Duration `json:"soak,omitempty"`
}

// A Treatment is what happens to pods of some kind. Which are allowed, and which the empty string stands for, is said at the field.
type Treatment string

// The treatments.
const (
	blockPods      Treatment = "Block" // nothing happens to them, and the node is not drained while they are there
	skipPods       Treatment = "Skip"  // nothing happens to them, and they are not waited for
	EvictPods      Treatment = "Evict"
	LastDaemonSets Treatment = "Last" // they are evicted after all others
)

// A WindowTreatment is what happens to the cordon outside the windows.
type WindowTreatment string

// The treatments of the cordon outside the windows. The empty string is Hold.
const (
	holdCordon WindowTreatment = "Hold"
	UndoCordon WindowTreatment = "Undo"
)

// An UncordonResponse is what happens when somebody else uncordons a node that is held.
type UncordonResponse string

// The responses to an uncordon by others. The empty string is Pause: no eviction starts until the node is cordoned again, by
// anybody, and the status says so.
const (
	pauseOnUncordon UncordonResponse = "Pause"
	Recordon        UncordonResponse = "Recordon"
)

// A Window is a time in which evictions may start: From is in it, Until is not. Zero means open at that end. Recurring windows are the
// caller's to unroll.
type Window struct {
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// A Removal says what may be lost with a node that does not come back.
type Removal struct {
	AllowLocalData   bool `json:"allowLocalData,omitempty"`
	AllowLastReplica bool `json:"allowLastReplica,omitempty"`
	AllowQuorum      bool `json:"allowQuorum,omitempty"`
}

// A Rule decides for the pods that it matches. All fields that are set have to match; a rule with none matches every pod.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type Rule struct {
	// Name stands in messages.
	Name string `json:"name"`
	// Namespaces lists namespaces by name.
	Namespaces []string `json:"namespaces,omitempty"`
	// Selector matches the pod's labels.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// OwnerKinds lists kinds of the controlling owner: "StatefulSet". "*" is any kind: a pod that has a controller.
	OwnerKinds []string `json:"ownerKinds,omitempty"`
	// MinPriority and MaxPriority bound the pod's priority, both ends included.
	MinPriority *int32 `json:"minPriority,omitempty"`
	MaxPriority *int32 `json:"maxPriority,omitempty"`
	// PodMatch has more of what a pod can be known by. In JSON its fields stand beside the others.
	PodMatch `json:",inline"`

	// Behavior is what happens to the pod; empty leaves that to the pod's label and the policy's fields. [BehaviorEvict] also
	// allows the loss of local data and of pods without a controller. [BehaviorBlock] keeps the pod until the rule does
	// not match it any more; a step of the Escalation still takes it, as it takes any other blocked pod.
	Behavior Behavior `json:"behavior,omitempty"`
	// Tier orders the pods that leave: the lowest goes first, and a later tier starts when the earlier ones are gone. Default 0.
	Tier int32 `json:"tier,omitempty"`
	// Deadline bounds WaitCompleted and Block (after it the pod is evicted; zero: no end), from the start of the drain,
	// and is the longest silence of a hook (zero: 20 minutes).
	Deadline time.Duration `json:"deadline,omitempty"`
	// Hooks names the responders for [BehaviorHook], asked in order.
	Hooks []string `json:"hooks,omitempty"`
	// Quorum marks members of a quorum, which [Policy].Removal stops for.
	Quorum bool `json:"quorum,omitempty"`
}

// A PodMatch says by what else than names, labels, owners and priority a [Rule] knows its pods. All fields that are set
// have to match; of a list, one element is enough. What the [Cache] cannot answer is an error that wraps [ErrOption] and
// names the field, in every pass and dry run.
type PodMatch struct {
	// Annotations of the pod, of which each has to match.
	Annotations []AnnotationMatch `json:"annotations,omitempty"`
	// NamespaceSelector matches the labels of the pod's namespace. It needs a [NamespaceCache].
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// PriorityClasses lists names of PriorityClasses.
	PriorityClasses []string `json:"priorityClasses,omitempty"`
	// Resources lists extended resources, such as "nvidia.com/gpu". A pod matches that requests more than none of one.
	Resources []string `json:"resources,omitempty"`
	// Volumes lists kinds of volumes: EmptyDir, HostPath, PersistentVolumeClaim (ephemeral ones included), and Local, a
	// claim whose volume does not leave the node. Local needs a [VolumeCache].
	Volumes []string `json:"volumes,omitempty"`
	// StorageClasses lists names of StorageClasses of the pod's claims. It needs a [VolumeCache].
	StorageClasses []string `json:"storageClasses,omitempty"`
	// Filter is a condition in code: why stands in messages, and may be empty. It has no JSON: a rule that has one is
	// refused there, as it would match more pods without it. It is called in every pass for each pod that the other
	// fields match, from several goroutines; it must not block, and must not change the pod, which is shared and has the
	// fields that the cache keeps. Plan calls it twice for equal arguments and expects the same answer. A panic is not
	// caught.
	Filter func(pod *corev1.Pod) (matches bool, why string) `json:"-"`
}

// An AnnotationMatch is a condition on one annotation of a pod.
type AnnotationMatch struct {
	// Key is the annotation's name. The cache of drain/kube keeps those that its CacheOptions name.
	Key string `json:"key"`
	// Values lists values that match, compared exactly. Empty means any, unless one of the next fields is set.
	Values []string `json:"values,omitempty"`
	// OrDuration also matches a Go duration, such as "90m", until that has passed since the start of the pod. A value
	// that is neither, nor "false", blocks the pod with the Reason InvalidBehavior.
	OrDuration bool `json:"orDuration,omitempty"`
	// NamesLocalVolumes matches a value that lists, with commas, each volume of the pod with data on the node: its
	// hostPath volumes, and its emptyDir volumes that are not in memory.
	NamesLocalVolumes bool `json:"namesLocalVolumes,omitempty"`
}

// A Behavior is what a rule, or a pod's own label, asks for.
type Behavior string

// The behaviors of pods in a drain.
const (
	BehaviorEvict         Behavior = "Evict"
	BehaviorSkip          Behavior = "Skip"
	BehaviorWaitCompleted Behavior = "WaitCompleted"
	BehaviorHook          Behavior = "Hook"
	BehaviorBlock         Behavior = "Block" // stays, and the node is not drained while it is there
)

// What pods may say of themselves, unless [Policy].IgnorePodLabels is set.
const (
	// behaviorLabel holds a [Behavior].
	behaviorLabel = "drain.belay.dev/behavior"
	// HookAnnotation names the responders of a pod, in order, separated by commas. It implies [BehaviorHook].
	HookAnnotation = "drain.belay.dev/hooks"
	// deadlineAnnotation bounds WaitCompleted and the silence of a hook: a Go duration, "30m".
	deadlineAnnotation = "drain.belay.dev/deadline"
)

// defaultHookSilence is how long a hook may give no sign of life. It is the time that KEP-4563 gives its responders.
const defaultHookSilence = 20 * time.Minute

// An Escalation is one step of the ladder: After this time from the start of the drain, Step is used for pods that are still there.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type Escalation struct {
	After time.Duration `json:"after"`
	Step  Step          `json:"step"`
	// GracePeriodSeconds is for StepDelete: nil means the policy's, else the pod's own. At least 1. It also shortens the
	// running grace period of a pod that is ending already: the server counts it from when that began, a kubelet
	// from when it hears of it.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
}

// A Step is a means to make a pod leave.
type Step string

// The steps, from mild to hard.
const (
	// StepEvict asks the eviction API. It is always the first and needs no [Escalation].
	StepEvict Step = "Evict"
	// StepDelete deletes the pod, past every budget. It comes no earlier than 10 s after the server has answered, and
	// refused, an eviction of the pod: an operator may take that for a signal.
	StepDelete Step = "Delete"
	// StepOutOfService taints the node node.kubernetes.io/out-of-service:NoExecute, so that pods and volumes are forced off it. It is
	// used only when [Options].PoweredOff proves that the machine is off, and the taint goes with the release.
	StepOutOfService Step = "OutOfService"
)
