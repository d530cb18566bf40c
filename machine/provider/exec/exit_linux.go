// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"

	"golang.org/x/sys/unix"
)

// awaitExit returns true when the process has ended, before it is reaped.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
