// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package maintenance carries out NodeMaintenance objects (drain/v1alpha1): it cordons, drains or holds the nodes
// that an object names, says in its status how far that has come, and gives the nodes back when the object is
// deleted.
//
// [Reconciler.Reconcile] is one bounded pass over one object; [Reconciler.Run] calls it when an object or one of its
// nodes has changed. What happens to a node is decided and done by package drain.
//
// # Promise
//
//   - Each object is a holder of its own, named after its UID. A node with several holders is opened when the last
//     one has gone, and only if it was open before the first.
//   - The finalizer is on the object before anything is written to a node. It goes when each node that the object has
//     entered is given back. A Node that was deleted keeps nothing. An object that is being deleted never enters a
//     node.
//   - Nothing is written to a node before a window is open, or after the deadline. After the deadline nothing more is
//     evicted, the cordon stays, and the status says so. Pods are deleted past a budget only by
//     spec.policy.escalation.
//   - A Node that matches the selector later is taken in; one that does not match any more is given back; one that is
//     created anew under the same name is begun anew.
//   - An object whose finalizer was removed by hand gives its nodes back all the same.
//   - The status lists at most 100 nodes and 20 blocked pods; the numbers beside them are of all.
//
// # No promise
//
// There is no order among objects that name the same node: each asks for what it wants. The preview is as old as a
// minute before a node is begun.
//
// # Concurrency
//
// All methods may be called from several goroutines, but Reconcile for one name from one at a time. Run one process
// at a time, by leader election: requests have no [drain.Request].Run.
//
// # Crash behaviour
//
// Kill it anywhere. What is known is in the object and in the marks on the Nodes; the next process reads both and
// goes on. Numbers of accepted evictions begin again.
//
// # Rights
//
// Those of drain/kube.RBAC, and on nodemaintenances of the group belay.dev: get, list, watch and patch, and patch on
// nodemaintenances/status.
package maintenance
