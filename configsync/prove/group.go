// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// inGroup runs a command in a process group of its own, and kills what is left of the group when the command ends or ctx does. On Linux the kernel
// kills the command when the thread that started it ends, so one goroutine holds that thread.
func inGroup(ctx context.Context, cmd *exec.Cmd) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g := &group{}
	stop := context.AfterFunc(ctx, g.kill)
	defer stop()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- g.run(ctx, cmd)
	}()
	return <-done
}

// A group is the process group of a command. Its number is the command's as long as nobody has waited for that.
type group struct {
	mu  sync.Mutex // held across kill(2), which does not wait
	pid int        // 0: there is none, or none any more
}

// run starts the command and waits for its end.
func (g *group) run(ctx context.Context, cmd *exec.Cmd) error {
	own(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	g.is(cmd.Process.Pid)
	if ctx.Err() != nil {
		g.kill() // it was over before there was a group
	}
	if awaitExit(cmd.Process.Pid) { // and is not reaped yet: the group is still its own
		g.kill()
		g.is(0)
	}
	err := cmd.Wait()
	g.is(0)
	return err
}

func (g *group) is(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pid = pid
}

func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pid != 0 {
		_ = syscall.Kill(-g.pid, syscall.SIGKILL) // that nobody is left in it is no error
	}
}
