// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command reaper waits until its standard input ends and then removes what its owner started.
//
// The owner, a test binary or the demo's control plane, holds the other end of that pipe and nothing else does, so
// the input ends when the owner closes it or dies, however it dies. What belongs to the owner is found by one
// identifier and not by a list, so that nothing can be forgotten between a start and its registration: processes
// that carry it in their environment or in a cgroup's name, mounts beneath the directory, cgroups named by it.
//
// It imports only the standard library: its own files are all that its build depends on.
package main
