// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"errors"
	"fmt"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/belayproject/belay/internal/process"
	"github.com/belayproject/belay/lkg"
)

// drain is how long the output of a child that has ended is waited for, where somebody outside its group holds it
// open.
const drain = 5 * time.Second

// child is one running process and its process group.
type child struct {
	group *process.Group
	kept  *process.Tail // its last lines
	hard  atomic.Bool   // SIGTERM was not enough
}

// begin starts cmd in a process group of its own. On Linux the kernel kills it when the agent dies.
func begin(cmd *exec.Cmd) (*child, error) {
	process.DieWithParent(cmd)
	if cmd != nil && cmd.WaitDelay == 0 {
		cmd.WaitDelay = drain
	}
	kept := process.KeepTail(cmd)
	group, err := process.Start(cmd)
	if err != nil {
		return nil, err
	}
	return &child{group: group, kept: kept}, nil
}

// notExecuted says that a child could not be started. Its signature has no path, so that it is equal for all configs.
func notExecuted(err error) lkg.Exit {
	e := lkg.Exit{Fault: lkg.FaultNotExecuted, Signature: "could not be executed"}
	e.Detail = "could not be started: " + err.Error()
	var errno syscall.Errno
	if errors.As(err, &errno) {
		e.Signature += ": " + errno.Error()
	}
	return e
}

// stop ends the child: SIGTERM to its group, and SIGKILL after grace. It returns when the child was waited for.
func (c *child) stop(grace time.Duration) {
	c.group.Signal(syscall.SIGTERM)
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-c.group.Done():
	case <-t.C:
		c.hard.Store(true)
		c.group.Signal(syscall.SIGKILL)
		<-c.group.Done()
	}
}

// exit says how the child ended. An end that was not asked for has a signature and the last lines.
func (c *child) exit(planned bool) lkg.Exit {
	x := c.exitOf(planned)
	if state := c.group.State(); !planned && state != nil {
		x.Last = c.kept.LastLines()
		x.Signature = signatureOf(state.String(), x.Last)
	}
	return x
}

func (c *child) exitOf(planned bool) lkg.Exit {
	took := c.group.Ran().Round(time.Millisecond)
	state := c.group.State()
	switch {
	case planned && c.hard.Load():
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
