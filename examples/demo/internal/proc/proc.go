// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// A Process is one that was started. Its methods may be called from several goroutines.
type Process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // written before done is closed
}

// Start starts cmd, which must not have been started, and waits for it in the background. name is for errors.
func Start(name string, cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &Process{name: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended returns nil while the process runs, and then an error that says how it ended.
func (p *Process) Ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s has ended: %s", p.name, p.cmd.ProcessState)
	default:
		return nil
	}
}

// Stop asks the process to end, and after grace kills it and all of its process group. It returns when the process is gone. The
// error says that it had to be killed, or that it ended with another status than 0; nil if it had ended before, as [Process.Ended] says.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	if p.Ended() != nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	var killed error
	select {
	case <-p.done:
	case <-ctx.Done():
		killed = fmt.Errorf("%s did not end within %s and was killed", p.name, grace)
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // whoever is left of the group; mostly nobody
	<-p.done
	if killed == nil && p.err != nil {
		return fmt.Errorf("stopping %s: %w", p.name, p.err)
	}
	return errors.Join(killed)
}
