// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kube keeps machines in an API server, and looks at the Nodes of a workload cluster: what github.com/belayproject/belay/machine/controller needs.
//
// [Machines] are objects of github.com/belayproject/belay/machine/v1alpha1, [Nodes] those of the cluster that the machines join, which may be the same
// one or another, and [Secrets] what machines name. [Run] reconciles each machine when something about it has changed.
//
// # Promise
//
//   - Every write is guarded by resourceVersion and UID. Nothing is written over that was not read. A status is written as a patch of what has changed: what
//     a newer version of the definitions keeps there stays, but within a list that is changed. So it is with everything else of an object, where it stays also in
//     the items of a list that is changed, if they are found again by a key: taints by key and effect, hooks by name, owners by UID.
//   - Reads come from one watch for each kind; Live, and the lists on which machines are created or deleted, alone ask the API server. What the controller of
//     machines has written is seen as it was written, also while the watch is behind.
//   - A Node is found by the last segment of its ProviderID, never by name or address. It is removed by UID. That there is none is asked of the API server
//     before an end goes on.
//   - Every call has a deadline.
//
// # No promise
//
// A machine that this version can't read is left alone; its status says why.
//
// # Concurrency and crashes
//
// All methods may be called concurrently. Nothing is kept that could not be lost.
//
// # Rights
//
// They are [MachineRules], [GroupRules] and [NodeRules], and no more: a test takes each of them. A [Cargo] takes besides,
// in the workload cluster, get on Nodes and list on pods and PersistentVolumes.
package kube
