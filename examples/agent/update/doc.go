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
//   - No order is followed before the guard has answered, where it is asked for, and before this process has held the Lease of its node,
//     where one is kept. A second agent under the name of the node is told so in an identity.DuplicateError that names both; it touches
//     neither the node nor the shadow.
//   - What has begun goes on while the API server can't be reached: a Lease that could not be renewed ends nothing, because nobody
//     can commit another attempt meanwhile. A Lease that another process has taken, and a guard that is gone, end it at once.
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
