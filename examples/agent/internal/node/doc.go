// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node gives one view of a node's config, whether its agent runs or not.
//
// [Live] is that of a running agent, which its admin socket serves. [Stopped] works on the state directory itself while no
// agent runs. [Open] picks the right one.
//
// # Promise
//
//   - Reading takes no lock and writes nothing.
//   - A change while no agent runs holds the lock of the state directory, so that no agent can start in between.
//   - What the next start would do comes from the function that decides at starts.
//
// # Concurrency
//
// All values may be used by several goroutines.
package node
