// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package prove

import (
	"os/exec"
	"syscall"
)

// own gives the command a process group. Outside Linux it can outlive an agent that was killed.
func own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// awaitExit returns false: the end of a process is known once it is reaped.
func awaitExit(int) bool { return false }
