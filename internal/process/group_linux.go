// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// DieWithParent has the kernel kill cmd when the process that starts it dies. It has no effect on systems other than
// Linux.
func DieWithParent(cmd *exec.Cmd) {
	if cmd != nil {
		attributesOf(cmd).Pdeathsig = syscall.SIGKILL
	}
}

// EndWithParent has the kernel send SIGTERM to cmd when the process that starts it dies. It has no effect on systems
// other than Linux.
func EndWithParent(cmd *exec.Cmd) { attributesOf(cmd).Pdeathsig = syscall.SIGTERM }

// diesWithParent reports whether the kernel signals cmd when the thread that started it ends.
func diesWithParent(cmd *exec.Cmd) bool {
	return cmd.SysProcAttr != nil && cmd.SysProcAttr.Pdeathsig != 0
}

// waitNoReap waits until the process has ended and leaves it to be reaped. It returns false if it cannot tell.
func waitNoReap(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
