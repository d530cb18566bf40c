// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "os/exec"

// DieWithParent has the kernel kill cmd when the process that starts it dies. It has no effect on systems other than
// Linux.
func DieWithParent(*exec.Cmd) {}

// EndWithParent has the kernel send SIGTERM to cmd when the process that starts it dies. It has no effect on systems
// other than Linux.
func EndWithParent(*exec.Cmd) {}

func diesWithParent(*exec.Cmd) bool { return false }

// waitNoReap returns false: this system cannot wait without reaping.
func waitNoReap(int) bool { return false }
