// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package badinput

import (
	"os/exec"
	"syscall"
)

// isolateGroup gives a child a process group of its own, so that a signal to its group reaches no other process.
func isolateGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
