// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import "syscall"

// attributes make a process group of its own, and ask the kernel for SIGTERM when the thread that starts the process ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
