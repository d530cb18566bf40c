// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drain empties Kubernetes nodes, one or many at once, keeps every PodDisruptionBudget, and has a reason for every pod that
// stays. It also holds a node in maintenance, and gives back what it found.
//
// [Plan] is the whole decision: a pure function from what was seen to an action and a reason for each pod. [Drainer.Reconcile] is
// one bounded pass that acts on that plan; it never sleeps and keeps nothing that it could not lose. [Drainer.ReconcileSet] takes
// a set of nodes through it, in groups, a few at a time. A dry run prints the plan that the drain would follow.
//
// # Promise
//
//   - A node is cordoned, with the holder's mark in the same write, before the first pod is asked to leave.
//   - Pods leave by eviction, so that budgets are kept by the server. Nothing else is done unless [Policy].Escalation allows it,
//     step by step, each announced with its time. A grace period of 0 is used only with proof that the machine is off.
//   - Only a pod whose UID is on the node in the plan of this very pass is evicted, with the UID as precondition.
//   - A pod that cannot leave never stops its neighbours, and is reported with a typed [Reason], its budget, and since when.
//   - Drained means: nothing that has to leave is on the node, for the whole settle time, confirmed by a consistent read.
//     It is latched on the node for the maintenance ID and is not undone by what happens after.
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
// The annotation [MarkAnnotation] on the Node holds who has cordoned it, since when, and what it was before. It is written when a
// node is cordoned, when it is drained, when it is released, and when its watch after the release ends: four writes for a
// maintenance, whatever the number of pods. Progress is never written to the Node: it is in the [Status], for the caller to keep.
//
// # Concurrency
//
// All methods may be called from several goroutines; passes over the same node wait for each other. Drainers of a process
// share one [Scheduler]. Two processes that drain the same node under different holders are safe; the server keeps the budgets.
//
// # Crash behaviour
//
// Kill it anywhere. What has to survive is in the mark, and every write tests the resourceVersion that it was decided on. The next
// pass reads the world again and goes on. Deadlines count from the time in the mark. What only memory knew (since when a pod is
// blocked, back-offs, pods that came back) starts again, or comes back with [Request].Last.
//
// # Rights
//
// The Drainer needs: list and watch on pods, nodes, poddisruptionbudgets, and, where their stages are used, volumeattachments,
// persistentvolumeclaims, persistentvolumes and daemonsets; create on pods/eviction; patch on nodes. For escalation also delete
// on pods; for [Hold] get and update on leases in kube-node-lease; for [Options].NodeConditions patch on nodes/status.
package drain
