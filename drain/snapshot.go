// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Snapshot is all that [Plan] looks at. Objects may be shared with a cache: Plan changes none.
type Snapshot struct {
	// Nodes are those to be drained. They share the budgets; where a budget does not allow everybody, the node with the fewest pods
	// left comes first, so that nodes finish.
	Nodes []NodeView
	// Budgets holds the PodDisruptionBudgets of at least every namespace with a pod on the nodes.
	Budgets []*policyv1.PodDisruptionBudget
	// Spent counts, for each budget, evictions that the server has accepted and that the budget's status does not show yet.
	Spent map[types.NamespacedName]int
	// Dips holds budgets that expect fewer pods than a moment ago. Nil is fine.
	Dips map[types.NamespacedName]Dip
	// Stuck holds the budgets that allow no eviction, with the time from which no change of theirs is expected: from then
	// on the server is asked about their pods all the same. Nil means that none is known to be stuck.
	Stuck map[types.NamespacedName]time.Time
	// DaemonSets are the DaemonSets that exist, by UID. Nil means not known: every pod of one then counts as wanted.
	DaemonSets map[types.UID]bool
	// Claims and Volumes resolve what pods have mounted; needed for the volume stage, for
	// [Policy].Removal and for rules on volumes.
	Claims  map[types.NamespacedName]*corev1.PersistentVolumeClaim
	Volumes map[string]*corev1.PersistentVolume
	// Namespaces holds the labels of namespaces, by name; needed for rules with a NamespaceSelector.
	Namespaces map[string]map[string]string
	// PodsIn, when set, returns the pods of a namespace, also those without a node: a budget that allows none then names
	// its pods that are not ready, and why they are not.
	PodsIn func(namespace string) []*corev1.Pod
	// Fits, when set, says whether some other node would take the pod, and if not, why. A pod that fits nowhere is blocked.
	Fits func(pod *corev1.Pod) (ok bool, why string)
}

// A Dip is a budget's number of expected pods that has just become smaller, as it does for a moment whenever a pod is replaced under a
// budget with a number for minAvailable. Until then the earlier number is the one by which a budget may turn out never to allow any.
type Dip struct {
	Pods  int32
	Until time.Time
}

// A NodeView is one node with its pods, and what the drain remembers of it.
type NodeView struct {
	Node *corev1.Node
	// Pods are all pods bound to the node.
	Pods []*corev1.Pod
	// Attachments are the VolumeAttachments of the node.
	Attachments []*storagev1.VolumeAttachment
	// Started is when the node was cordoned for this drain; zero for one that has not begun.
	Started time.Time
	// Bounces counts, for each owner, how often in a row one of its pods has come back to the node: one that was made after another of them was evicted from there.
	Bounces map[types.UID]int
	// Responders holds, by pod UID, the name of the [PodResponder] that has found the pod.
	Responders map[types.UID]string
	// Hooks holds, by pod UID, what the responders have said.
	Hooks map[types.UID]HookState
	// Attempts holds, by pod UID, the server's last answer to an eviction that was not accepted, while it is still to be believed.
	Attempts map[types.UID]Answer
	// Asked holds, by pod UID, when the server first answered an eviction, or a deletion, without accepting it, or had
	// left three of them without any answer.
	Asked map[types.UID]time.Time
	// Acted holds, by pod UID, what has changed since the server refused the pod's last eviction, such as "its
	// annotations": an operator may be at work.
	Acted map[types.UID]string
	// Shortened holds, by pod UID, when the server took a shorter grace period for a pod that was ending: its kubelet counts
	// from about then.
	Shortened map[types.UID]time.Time
	// PoweredOff says that the machine is proven to be off.
	PoweredOff bool
}

// An Action is what a drain does about a pod.
type Action string

// The actions.
const (
	Evict Action = "Evict" // can leave now, by PodPlan.Step
	Skip  Action = "Skip"  // is not asked to leave and not waited for
	Wait  Action = "Wait"  // leaves by itself, or is asked when something else has happened
	Block Action = "Block" // somebody has to act, or an escalation step comes
	Hook  Action = "Hook"  // a responder is to be asked, or has been
)

// A PodPlan is the decision about one pod.
type PodPlan struct {
	PodRef
	Action  Action
	Reason  Reason
	Message string
	// Budgets are the names of the budgets that match the pod.
	Budgets []string
	// Guarded is true where the server will ask the one budget, false where it passes the pod without (pending, finished, ending, or
	// unready under a policy that lets it go).
	Guarded bool
	// Tier is the pod's place in the order.
	Tier int32
	// Step is the means that is used now; GracePeriodSeconds goes with it, nil for the pod's own. StepEvict beside the
	// Action Block or Wait means that an eviction is sent though the pod's budget allows none: operators take it as a
	// signal, and the server's answer decides.
	Step               Step
	GracePeriodSeconds *int64
	// Hook is the responder to be asked, for action Hook; HookSilence how long it may be silent.
	Hook        string
	HookSilence time.Duration
	// Next and NextAt announce the next step of the ladder.
	Next   Step
	NextAt time.Time
}

// A NodePlan is the decision about one node.
type NodePlan struct {
	Node   string
	Pods   []PodPlan // ordered by tier, then by namespace and name
	Counts Counts
	// Attached lists the volumes of pods that leave or have left; filled in where [Policy].Volumes is set.
	Attached []Attached
	// Next is the earliest time at which the plan changes without a change of the snapshot; zero for none.
	Next time.Time
}

// A BudgetPlan says what a budget means for the nodes of a plan.
type BudgetPlan struct {
	Budget  types.NamespacedName
	Pods    int // pods on the nodes that have to leave under this budget
	Allowed int // what it allows now, less what is spent
	// Rounds is the least number of times that pods have to be replaced before all have left; 0 when Never is true.
	Rounds int
	// Never is true when the budget allows none even with every pod ready.
	Never bool
}

// A Result is what [Plan] decides.
type Result struct {
	Nodes   []NodePlan // in the order of the snapshot
	Budgets []BudgetPlan
	// Rounds is the largest of the budgets' rounds; at least 1 where a pod has to leave.
	Rounds int
}
