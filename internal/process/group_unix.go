// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"os"
	"os/exec"
	"syscall"
)

// setProcessGroup makes cmd the leader of a process group.
func setProcessGroup(cmd *exec.Cmd) {
	attr := attributesOf(cmd)
	attr.Setpgid = !attr.Setsid
	attr.Pgid = 0
}

func attributesOf(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}

func signalGroup(leader *os.Process, sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		_ = syscall.Kill(-leader.Pid, s) // an empty group is no error
	}
}
