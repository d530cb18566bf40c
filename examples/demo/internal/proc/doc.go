// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proc starts the processes of the demo and sees to it that none of them is left behind.
//
// Each process has a process group of its own, so that Ctrl-C reaches the demo alone, which then ends the others in order. On Linux
// a process is also told to end when the thread that started it ends: call [Start] from a goroutine that is locked to a thread
// which lives as long as the demo, such as main's.
package proc
