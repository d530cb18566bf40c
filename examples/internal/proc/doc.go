// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proc starts the processes of the demo and sees to it that none of them is left behind.
//
// Each process has a process group of its own, so that Ctrl-C reaches the demo alone, which then ends the others in
// order. On Linux the kernel also asks a process to end when the demo dies.
package proc
