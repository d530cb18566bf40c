// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/belayproject/belay/internal/process"
)

// A Process is one that was started. Its methods may be called from several goroutines.
type Process struct {
	*process.Group
	name string
	cmd  *exec.Cmd
}

// Start starts cmd, which must not have been started, and waits for it in the background. name is for errors.
func Start(name string, cmd *exec.Cmd) (*Process, error) {
	process.EndWithParent(cmd)
	group, err := process.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return &Process{group, name, cmd}, nil
}

// EndError returns nil while the process runs, and then an error that says how it ended.
func (p *Process) EndError() error {
	if state := p.State(); state != nil {
		return fmt.Errorf("%s has ended: %s", p.name, state)
	}
	return nil
}

// Stop asks the process to end, and after grace kills it and all of its process group. It returns when the process is
// gone. The error says that it had to be killed, or that it ended with another status than 0. It is nil if the process
// had ended before, as [Process.EndError] says.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	if p.EndError() != nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	var killed error
	select {
	case <-p.Done():
	case <-ctx.Done():
		killed = fmt.Errorf("%s did not end within %s and was killed", p.name, grace)
	}
	p.Signal(os.Kill)
	<-p.Done()
	if err := p.Err(); killed == nil && err != nil {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	return errors.Join(killed)
}
