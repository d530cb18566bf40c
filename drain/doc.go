// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drain empties Kubernetes nodes, one or many at once, keeps every PodDisruptionBudget, and has a reason for every pod that
// stays. It also holds a node in maintenance, and gives back what it found.
//
//	package example
//
//	import (
//		"context"
//		"github.com/belayproject/belay/drain/kube"
//		"k8s.io/client-go/rest"
//	)
//
//	func empty(ctx context.Context, config *rest.Config, node string) error {
//		_, err := kube.DrainNode(ctx, config, node, kube.DrainOptions{Holder: "kernel-upgrade"})
//		return err // a kube.NotDrainedError names the pods that stay
//	}
//
// [Plan] is the whole decision: a pure function from what was seen to an action and a reason for each pod. [Drainer.ReconcileRequest] is
// one bounded pass that acts on that plan; it never sleeps and keeps nothing that it could not lose. [Drainer.ReconcileSet] takes
// a set of nodes through it, in groups, a few at a time. A dry run prints the plan that the drain would follow.
//
// # Promise
//
//   - A node is cordoned, with the holder's mark in the same write, before the first pod is asked to leave.
//   - Pods leave by eviction, so that budgets are kept by the server. Nothing else is done unless [Policy].Escalation
//     allows it, step by step, each announced with its time, and no pod is deleted before its eviction was refused. A
//     grace period of 0 is used only with proof that the machine is off.
//   - The server is asked about every pod, also about one whose budget allows none: operators take an eviction for a
//     signal to move their pod. Such a pod is asked at once where its budget can never allow it, and otherwise when the
//     budget has not changed for 10 s (two minutes after an eviction of this process); then 2 minutes later, and
//     doubling up to 16. A change of its budget, its labels or its readiness brings the next time forward, to 10 s
//     after the one before.
//   - Only a pod whose UID is on the node in the plan of this very pass is evicted, with the UID as precondition.
//   - A pod that cannot leave never stops its neighbours, and is reported with a typed [Reason], its budget, and since when.
//   - Drained means: nothing that has to leave is on the node or can still be on its way to it ([Policy].Settle),
//     confirmed by a consistent read. It is latched on the node for the maintenance ID and is not undone by what
//     happens after.
//   - Several holders may cordon a node. The last one to release it uncordons, and only a node that was schedulable before the first.
//   - The zero [Policy] is the safe one: local data and pods without a controller stay, nothing escalates, one node at a time.
//
// # No promise
//
// Pods that tolerate the cordon may come back; they are counted and reported, not fought. What a budget never allows is never forced
// without an escalation step. An eviction that the server accepted cannot be taken back: after a cancel, pods may still be ending.
//
// # Marks
//
// The annotation [MarkAnnotation] on the Node holds who has cordoned it, since when, and what it was before. It is
// written when a node is cordoned, when it is drained, when it is released, and when its watch after the release ends:
// four writes for a maintenance, whatever the number of pods. A node of a [Set] that waits for its place is cordoned
// before: one more. A release opens the node first: where responders were asked, and there is no watch, the mark stays
// until they were told, which is a write more. Where another client removes it from a node that stays cordoned, the
// process that drains the node writes it again, with what the node was before. Progress is never written to the Node:
// it is in the [Status], for the caller to keep.
//
// # Concurrency
//
// All methods may be called from several goroutines; passes over the same node wait for each other, but for those of a [Hold], which wait
// only for passes of their own holder: a Lease is renewed in time whatever else is done to the node. Drainers of a process
// share one [Scheduler]. Two processes that drain the same node under different holders are safe; the server keeps the budgets.
//
// # Crash behaviour
//
// Kill it anywhere. What has to survive is in the mark, and every write tests the resourceVersion that it was decided on. The next
// pass reads the world again and goes on: which nodes of a [Set] have been begun is in their marks, and [Set].MaxNodes holds as far as the
// cache shows those of the process before (see [Cache]). Deadlines count from the time in the mark. What only memory knew (since when a pod is
// blocked, back-offs, pods that came back) starts again, or comes back with [Request].Last.
//
// One thing does not come back without Last: that pods were deleted past their budget by [StepDelete]. The mark says so from the latch on, and
// has said so of [StepOutOfService] since that taint was set; a process that dies between such a deletion and the latch leaves the next one
// to call the drain [OutcomeDrained], with only the event "Forced" of each pod to tell. A write for it would be a fifth one to the Node.
//
// The server charges a budget before it deletes the pod. A process that dies while an eviction is under way can leave the unit charged and
// the pod alive: the disruption controller gives it back after 2 minutes.
//
// # Rights
//
// The Drainer needs: list and watch on pods, nodes, poddisruptionbudgets, and, where their stages are used, volumeattachments,
// persistentvolumeclaims, persistentvolumes, daemonsets and namespaces; create on pods/eviction; patch on nodes. For
// escalation also delete on pods; for [Hold] get and update on leases in kube-node-lease; for
// [Options].NodeConditions patch on nodes/status.
//
// # Coming from kubectl's Helper
//
// What takes the place of the fields of Helper in k8s.io/kubectl/pkg/drain, v0.37:
//
//	Ctx                              the ctx of each call; when that of Run ends, the nodes are given back
//	Client                           Options.Cache and Options.Client; package drain/kube makes both
//	Force                            Policy.Unmanaged: EvictPods
//	GracePeriodSeconds               Policy.GracePeriodSeconds; -1 is nil, 0 is refused
//	IgnoreAllDaemonSets              always true; Policy.DaemonSets: LastDaemonSets evicts their pods at the end
//	Timeout                          Request.Deadline, an absolute time for the whole set
//	DeleteEmptyDirData               Policy.LocalData: EvictPods; or Policy.LocalDataLimit for small volumes alone
//	Selector                         none: Set.Groups names the nodes
//	PodSelector                      Policy.Rules: a Rule with the opposite Selector and BehaviorSkip
//	ChunkSize                        none: pods come from a watch
//	DisableEviction                  none; Policy.Escalation with StepDelete asks first and deletes later
//	SkipWaitForDeleteTimeoutSeconds  none: such a pod is a Blocker with the reason FinalizersRemain,
//	                                 NodeUnreachable or StuckTerminating; StepOutOfService helps, with proof
//	EvictErrorRetryDelay             none: the next try comes with a change of the budget or the pod, or some time later
//	AdditionalFilters                Policy.Rules, as data or with a Filter in code; PresetRules for annotations of
//	                                 Karpenter and cluster-autoscaler; the label drain.belay.dev/behavior on pods
//	Out, ErrOut                      none: Status is data; Options.Recorder gets events
//	DryRunStrategy                   Drainer.Plan, which writes nothing
//	OnPodDeletedOrEvicted,           Status.Evicted, Status.Forced and Status.Blockers after each pass;
//	OnPodDeletionOrEvictionStarted,  Metrics.Eviction for each answer of the server
//	OnPodDeletionOrEvictionFinished
//
// And of the functions: RunCordonOrUncordon is a [Request] of mode [Cordon] or [Release], RunNodeDrain is DrainNode of drain/kube, or
// [Drainer.Run] with a [Set] of one node, GetPodsForDeletion is [Drainer.Plan]. What differs in what they do:
//
//   - A pod that is not to be evicted blocks itself, not its node: there, one pod with local data or without a controller is an error before
//     the first eviction, and the node stays cordoned. The same goes for answers of the server that Helper takes for the end of the drain.
//   - A pod that is already ending is waited for, not evicted again. One that has succeeded or failed is ignored, not evicted and
//     waited for, unless [Policy].DeleteFinished is set.
//   - Nothing is polled each 5 s: pods, nodes and budgets are watched, and an eviction that was refused is tried again
//     when a watch says that it may be accepted, and without that at growing intervals of up to 2 minutes. No zero
//     value means at once, again and again, or with no time to end.
//   - Evictions under one PodDisruptionBudget go one after the other, over all nodes of a [Scheduler], unless there are many: the API server sleeps
//     for half a second where two meet at a budget. One that takes more than a second holds no other back.
//   - Pods are known by UID: one that was created anew under the same name, on this node or another, is never taken for the one to leave.
//   - Drained is true of a node to which no pod is on its way ([Policy].Settle), not of a list that was read once.
//   - The cordon has an owner and is given back as it was found; an uncordon by somebody else pauses the drain.
//
// examples/drain is a command on this, with kubectl's flags.
package drain
