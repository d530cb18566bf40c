// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs a command in a process group of its own and leaves no process of the group behind.
//
// [Start] begins a command, [Group.Signal] reaches the whole group, and [Group.Done] is closed when the command has
// ended and the rest of its group is killed. [Run] does all of it for a command that has to end with a context.
//
// On Linux the rest of the group is killed after the command has ended and before it is reaped (waitid with WNOWAIT).
// Until then the kernel gives the number of the group to no other group, so that no signal reaches a foreign process.
// Other Unix systems cannot wait without reaping: there the group is killed right after the command is reaped.
// Elsewhere there are no process groups, and the command alone is killed.
//
// The package imports the standard library and golang.org/x/sys only, so leaves may import it.
package process
