// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/belayproject/belay/lkg"
)

// drain is how long the output of a child that has ended is waited for, where somebody outside its group holds it open.
const drain = 5 * time.Second

// child is one running process and its process group.
type child struct {
	cmd   *exec.Cmd
	since time.Time
	gone  chan struct{} // closed when the process was waited for
	took  time.Duration // from start to end; read after gone

	mu    sync.Mutex // guards what follows
	ended bool       // the process ID may be another's from now on
	hard  bool       // SIGTERM was not enough
}

// begin starts cmd in a process group of its own. On Linux the kernel kills it when the thread that started it ends, so one
// goroutine holds that thread for as long as the child lives.
func begin(cmd *exec.Cmd) (*child, error) {
	c := &child{cmd: cmd, gone: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		own(cmd)
		if cmd.WaitDelay == 0 {
			cmd.WaitDelay = drain
		}
		err := cmd.Start()
		c.since = time.Now()
		started <- err
		if err == nil {
			c.end()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// end waits for the end of the process and kills what is left of its group, while the group can't be another's yet: before the
// process is reaped, where the platform allows. Nobody else may signal from then on.
func (c *child) end() {
	exited := awaitExit(c.cmd.Process.Pid)
	c.took = time.Since(c.since)
	if exited {
		c.signal(syscall.SIGKILL)
	}
	c.mu.Lock()
	c.ended = exited
	c.mu.Unlock()
	_ = c.cmd.Wait() // the process state says more
	if !exited {
		c.took = time.Since(c.since)
		c.signal(syscall.SIGKILL)
		c.mu.Lock()
		c.ended = true
		c.mu.Unlock()
	}
	close(c.gone)
}

// stop ends the child: SIGTERM to its group, and SIGKILL after grace. It returns when the child was waited for.
func (c *child) stop(grace time.Duration) {
	c.signal(syscall.SIGTERM)
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-c.gone:
	case <-t.C:
		c.mu.Lock()
		c.hard = true
		c.mu.Unlock()
		c.signal(syscall.SIGKILL)
		<-c.gone
	}
}

// signal goes to the whole group, if it is still the child's.
func (c *child) signal(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		_ = syscall.Kill(-c.cmd.Process.Pid, sig) // that nobody is left in it is no error
	}
}

// exit says how the child ended.
func (c *child) exit(planned bool) lkg.Exit {
	took := c.took.Round(time.Millisecond)
	state := c.cmd.ProcessState
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case planned && c.hard:
		return lkg.Exit{Kind: lkg.ExitPlanned, Detail: fmt.Sprintf("stopped on request after %s, by SIGKILL as SIGTERM was not enough", took)}
	case planned:
		return lkg.Exit{Kind: lkg.ExitPlanned, Detail: fmt.Sprintf("stopped on request after %s", took)}
	case state == nil:
		return lkg.Exit{Detail: fmt.Sprintf("ended in an unknown way after %s", took)}
	case state.Success():
		return lkg.Exit{Kind: lkg.ExitClean, Detail: fmt.Sprintf("exit status 0 after %s", took)}
	default:
		return lkg.Exit{Kind: lkg.ExitCrash, Detail: fmt.Sprintf("%s after %s", state, took)}
	}
}
