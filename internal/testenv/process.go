// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/belayproject/belay/internal/process"
)

const (
	readyPoll = 20 * time.Millisecond // at first; a server that starts slowly, as on a busy machine, is asked less often
	rarest    = 250 * time.Millisecond
	logTail   = 4 << 10 // bytes of a server's log kept in an error
)

// ErrNotRunning is returned by operations that need a running process.
var ErrNotRunning = errors.New("process is not running")

// Process is a server that can be stopped, killed, frozen and started again with the same flags, ports and data.
// Its methods may be called concurrently; they take effect one after the other.
type Process struct {
	name  string
	argv  []string
	log   string
	mark  func(*exec.Cmd)             // makes the reaper know the process
	ready func(context.Context) error // nil where a started process counts as ready

	mu   sync.Mutex     // guards what follows
	more []string       // flags after those of argv
	last *process.Group // nil before the first start
}

// Start starts the process and waits until it is ready. It does nothing where it runs already. Where the process
// ends before it is ready, or ctx ends, the process is killed and the error holds the end of its log.
func (p *Process) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alive() {
		return nil
	}
	run, err := p.launch()
	if err != nil {
		return fmt.Errorf("starting %q: %w", p.name, err)
	}
	p.last = run
	if err := p.awaitReady(ctx, run); err != nil {
		run.Signal(os.Kill)
		<-run.Done()
		return fmt.Errorf("starting %q: %w\n%s", p.name, err, tail(p.log))
	}
	return nil
}

func (p *Process) launch() (*process.Group, error) {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening its log: %w", err)
	}
	defer log.Close() // the process has its own descriptor
	cmd := exec.Command(p.argv[0], slices.Concat(p.argv[1:], p.more)...)
	cmd.Stdout, cmd.Stderr = log, log
	p.mark(cmd)
	return process.Start(cmd) // a group of its own: a terminal's Ctrl-C is for the owner alone
}

func (p *Process) awaitReady(ctx context.Context, run *process.Group) error {
	if p.ready == nil {
		return nil
	}
	for began := time.Now(); ; {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-run.Done():
			return fmt.Errorf("it ended before it was ready: %w", errors.Join(ErrNotRunning, run.Err()))
		case <-ctx.Done():
			return fmt.Errorf("waiting until it is ready: %w (%w)", ctx.Err(), err)
		case <-time.After(min(max(time.Since(began)/10, readyPoll), rarest)):
		}
	}
}

// SetFlags has the next Start add flags to those that the process always has, in place of the ones of an earlier call. Where both set one, these win.
func (p *Process) SetFlags(flags ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.more = slices.Clone(flags)
}

// Stop asks the process to end, as an orderly shutdown does, waits for it, and kills it when ctx ends first; that
// is not an error. It does nothing where the process does not run.
func (p *Process) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alive() {
		return nil
	}
	p.last.Signal(syscall.SIGTERM)
	p.last.Signal(syscall.SIGCONT) // a frozen process would not see the first
	select {
	case <-p.last.Done():
	case <-ctx.Done():
		p.kill()
	}
	return nil
}

// Kill ends the process as a crash does, with SIGKILL, and waits until it is gone. It does nothing where the
// process does not run.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alive() {
		p.kill()
	}
	return nil
}

func (p *Process) kill() {
	p.last.Signal(os.Kill)
	<-p.last.Done()
}

// Pause freezes the process with SIGSTOP, and returns when it stands still: connections to it stay open and are accepted, and nobody answers.
func (p *Process) Pause() error {
	if err := p.lockedSignal(syscall.SIGSTOP); err != nil {
		return err
	}
	if err := frozen(p.PID()); err != nil {
		return fmt.Errorf("freezing %q: %w", p.name, err)
	}
	return nil
}

// Resume lets a frozen process go on.
func (p *Process) Resume() error { return p.lockedSignal(syscall.SIGCONT) }

func (p *Process) lockedSignal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alive() {
		return fmt.Errorf("sending %s to %q: %w", s, p.name, ErrNotRunning)
	}
	p.last.Signal(s)
	return nil
}

// PID returns the process's number, or 0 where it does not run.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alive() {
		return 0
	}
	return p.last.PID()
}

// Wait waits until the process has ended by itself and returns its state, or an error where ctx ends first or
// the process was never started.
func (p *Process) Wait(ctx context.Context) (*os.ProcessState, error) {
	p.mu.Lock()
	run := p.last
	p.mu.Unlock()
	if run == nil {
		return nil, fmt.Errorf("waiting for %q: %w", p.name, ErrNotRunning)
	}
	select {
	case <-run.Done():
		return run.State(), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for %q: %w", p.name, ctx.Err())
	}
}

// Log returns the path of the file that collects what the process prints, over all its runs.
func (p *Process) Log() string { return p.log }

func (p *Process) alive() bool {
	return p.last != nil && p.last.State() == nil
}

// tail returns the last lines of a log for an error.
func tail(path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		return []byte(err.Error())
	}
	if len(data) > logTail {
		data = data[len(data)-logTail:]
		if _, rest, cut := bytes.Cut(data, []byte("\n")); cut {
			data = rest
		}
	}
	return data
}
