// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package exec

import (
	"context"
	osexec "os/exec"
	"sync"
	"syscall"
)

// inGroup runs a command in a process group of its own, and kills the group when ctx ends. On Linux it also kills what the command leaves in it.
func inGroup(ctx context.Context, cmd *osexec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	g := &group{pid: cmd.Process.Pid}
	stop := context.AfterFunc(ctx, g.kill)
	defer stop()
	if awaitExit(cmd.Process.Pid) { // and is not reaped yet: the group is still its own
		g.kill()
		g.forget()
	}
	err := cmd.Wait()
	g.forget()
	return err
}

// A group is the process group of a command. Its number is the command's as long as nobody has waited for that.
type group struct {
	mu  sync.Mutex // held across kill(2), which does not wait
	pid int        // 0: there is none any more
}

func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pid != 0 {
		_ = syscall.Kill(-g.pid, syscall.SIGKILL) // that nobody is left in it is no error
	}
}

// forget is for when the number may be another group's.
func (g *group) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pid = 0
}
