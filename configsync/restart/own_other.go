// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package restart

import (
	"os/exec"
	"syscall"
	"time"
)

// own gives the child a process group. Outside Linux a child can outlive an agent that was killed.
func own(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = !cmd.SysProcAttr.Setsid
	cmd.SysProcAttr.Pgid = 0
}

// awaitExit returns false: the end of a process is known once it is reaped.
func awaitExit(int) bool { return false }

// sinceBoot returns 0: no such clock is known here.
func sinceBoot() time.Duration { return 0 }
