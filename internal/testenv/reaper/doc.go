// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reaper makes sure that what a process starts is gone after it, also when it is killed.
//
// [New] starts the reaper, a small program that waits on a pipe which only the caller holds, and makes a directory.
// Each command that was passed to [Reaper.Mark] before its start, every process that descends from it, every mount
// beneath the directory, the cgroups named by the identifier, and the directory itself are removed once the caller
// calls [Reaper.Close] or dies. There is no window between the start of a process and its registration: the mark
// travels in the environment.
package reaper
