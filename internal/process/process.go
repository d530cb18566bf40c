// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// ErrNoCommand is the error of [Start] and [Run] for a nil command.
var ErrNoCommand = errors.New("process: the command is nil")

// A Group is a started command and its process group. Its methods may be called from any goroutine.
type Group struct {
	cmd     *exec.Cmd
	started time.Time
	done    chan struct{} // closed after err and ran are set
	err     error
	ran     time.Duration

	mu    sync.Mutex // held across kill(2), which does not wait
	ended bool       // the number of the group may belong to another group
}

// Start starts cmd as the leader of a process group. It keeps other fields of cmd.SysProcAttr; the leader of a new
// session leads a group already. The goroutine that starts a command of [DieWithParent] keeps its thread until the
// command ends.
func Start(cmd *exec.Cmd) (*Group, error) {
	return start(cmd, func() (unlock func()) {
		if !diesWithParent(cmd) {
			return func() {}
		}
		runtime.LockOSThread()
		return runtime.UnlockOSThread
	}, func() error { return nil })
}

// StartPrepared is like [Start]. It runs prepare first, on a thread of its own that starts the command and ends with
// it: what prepare changes of that thread, such as its namespaces, cmd inherits and nothing else sees. If prepare
// fails, StartPrepared returns its error.
func StartPrepared(cmd *exec.Cmd, prepare func() error) (*Group, error) {
	return start(cmd, func() (unlock func()) {
		runtime.LockOSThread() // a thread whose goroutine ends while it is locked ends too
		return func() {}
	}, prepare)
}

func start(cmd *exec.Cmd, lock func() (unlock func()), prepare func() error) (*Group, error) {
	if cmd == nil {
		return nil, ErrNoCommand
	}
	g := &Group{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		defer lock()()
		setProcessGroup(cmd)
		err := prepare()
		if err == nil {
			err = cmd.Start()
		}
		g.started = time.Now()
		started <- err
		if err == nil {
			g.waitAndKillRest()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return g, nil
}

// Run runs cmd in a process group of its own and returns the error of its Wait. It kills the group when ctx ends, and
// what is left of the group when cmd ends. If ctx has ended already, Run returns its error and starts nothing.
func Run(ctx context.Context, cmd *exec.Cmd) error {
	if cmd == nil {
		return ErrNoCommand
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	g, err := Start(cmd)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { g.Signal(os.Kill) })
	defer stop()
	<-g.done
	return g.err
}

// PID returns the process ID of the command, which is the number of its group.
func (g *Group) PID() int { return g.cmd.Process.Pid }

// Done returns a channel that is closed when the command is reaped and its output is complete.
func (g *Group) Done() <-chan struct{} { return g.done }

// Err returns the error of the command's Wait, and nil before Done is closed.
func (g *Group) Err() error {
	if !g.isDone() {
		return nil
	}
	return g.err
}

// State returns how the command ended, and nil before Done is closed.
func (g *Group) State() *os.ProcessState {
	if !g.isDone() {
		return nil
	}
	return g.cmd.ProcessState
}

// Ran returns how long the command ran, and 0 before Done is closed. It excludes the wait for output.
func (g *Group) Ran() time.Duration {
	if !g.isDone() {
		return 0
	}
	return g.ran
}

func (g *Group) isDone() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal to each process of the group. It does nothing after the command has ended.
func (g *Group) Signal(sig os.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		signalGroup(g.cmd.Process, sig)
	}
}

// waitAndKillRest waits for the command and kills the rest of its group while no other group can have its number.
func (g *Group) waitAndKillRest() {
	exited := waitNoReap(g.cmd.Process.Pid)
	g.ran = time.Since(g.started)
	if exited {
		g.killRest()
	}
	g.err = g.cmd.Wait()
	if !exited {
		g.ran = time.Since(g.started)
		g.killRest()
	}
	close(g.done)
}

// killRest kills the group for the last time.
func (g *Group) killRest() {
	g.mu.Lock()
	defer g.mu.Unlock()
	signalGroup(g.cmd.Process, os.Kill)
	g.ended = true
}
