// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package restart

import (
	"os/exec"
	"syscall"
)

// own gives the child a process group. Outside Linux a child can outlive an agent that was killed.
func own(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}
