// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// own gives the command a process group and ties its life to the calling thread's.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns true when the process has ended, before it is reaped.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
