// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package baseline keeps what probes saw before a config was adopted, so that they can compare while it is on trial.
//
// # Promise
//
// A baseline belongs to one assignment and is taken once, before the restart that adopts it. It is in the store
// before the restart, so it outlives the agent. A baseline that was taken later would describe what the config has
// made of the node.
//
// # No promise
//
// There may be no baseline: a server was away for longer than [Timeout], or the store can't be written. A probe then
// judges by what it sees alone.
//
// # Concurrency
//
// The methods of a [Keeper] and of what it wraps may be called from several goroutines.
package baseline
