// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/belayproject/belay/lkg"
)

// child is one running process and its process group.
type child struct {
	cmd   *exec.Cmd
	since time.Time
	gone  chan struct{} // closed when the process was waited for
	err   error         // of Wait; read after gone
	took  time.Duration // from start to end; read after gone
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
		err := cmd.Start()
		c.since = time.Now()
		started <- err
		if err != nil {
			return
		}
		c.err = cmd.Wait()
		c.took = time.Since(c.since)
		c.signal(syscall.SIGKILL) // what is left of its group
		close(c.gone)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// stop ends the child: SIGTERM to its group, and SIGKILL after grace. It returns when the child was waited for.
func (c *child) stop(grace time.Duration) {
	c.signal(syscall.SIGTERM)
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-c.gone:
	case <-t.C:
		c.signal(syscall.SIGKILL)
		<-c.gone
	}
}

// signal goes to the whole group. That the group is gone already is no error.
func (c *child) signal(sig syscall.Signal) { _ = syscall.Kill(-c.cmd.Process.Pid, sig) }

func (c *child) ran() time.Duration { return c.took }

// exit says how the child ended.
func (c *child) exit(planned bool) lkg.Exit {
	took := c.took.Round(time.Millisecond)
	var status *exec.ExitError
	switch {
	case planned:
		return lkg.Exit{Kind: lkg.ExitClean, Detail: fmt.Sprintf("stopped on request after %s", took)}
	case c.err == nil:
		return lkg.Exit{Kind: lkg.ExitClean, Detail: fmt.Sprintf("exit status 0 after %s", took)}
	case errors.As(c.err, &status):
		return lkg.Exit{Kind: lkg.ExitCrash, Detail: fmt.Sprintf("%s after %s", status.ProcessState, took)}
	default:
		return lkg.Exit{Detail: fmt.Sprintf("ended in an unknown way after %s", took)}
	}
}
