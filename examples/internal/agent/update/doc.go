// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package update takes a node's part in rollouts: it follows what the node's NodeShadow orders, by hooks or by a config syncer.
//
// A [Part] is the Lease of the node's agent, the question whether agents are held to their own nodes, and the agent of package
// rollout/nodeagent over the one shadow, watched. [Hooks] is the updater of a directory of programs, [Configs] that of a config syncer,
// [Revisions] says which ConfigMap the Revision of a name stands for.
//
// # Promise
//
//   - No order is followed, and nothing is written to the shadow, before the guard has answered, where it is asked for, and before this process
//     has held the Lease of its node, where one is kept. A second agent under the name of the node is told so in an
//     identity.DuplicateError that names both.
//   - What has begun goes on all the same, from the record on the node's disk: while the API server can't be reached, also after a boot, and
//     so does the way back from a revision that has cut the node off. A Lease that could not be renewed ends nothing: nobody can commit an
//     attempt meanwhile. When another process has taken the Lease, or the guard is gone, nothing more is read or written.
//   - A Node that was deleted and registered again is another one: its orders are followed, those to the one before are not.
//
// # Concurrency
//
// A Part has one Run at a time, which owns its goroutines.
//
// # Crash behaviour
//
// All that it needs is in the shadow and in the record of package rollout/nodeagent: kill it at any time.
package update
