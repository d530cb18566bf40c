// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package baseline keeps what probes saw before a config was put to use, so that they can compare while it is judged.
//
// # Promise
//
// A baseline belongs to one trial of the assigned config, and is taken anew before each restart that puts this config
// in the place of another one: when it is adopted, and when it is tried once more. It is in the store before the
// restart, so it outlives the agent. A baseline that was taken later would describe what the config has made of the
// node. It ends with the promotion: months later, what was there before says nothing about a config.
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
