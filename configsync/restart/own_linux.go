// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"os/exec"
	"syscall"
)

// own gives the child a process group and ties its life to the calling thread's.
func own(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
