// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A Process is a controller that runs.
type Process struct {
	// Events are what it tells; closed when it has ended.
	Events <-chan Event

	cmd    *exec.Cmd
	output *bytes.Buffer
	file   string
	ended  bool
}

// Spawn starts a controller. It ends with [Process.Kill], or with the control plane. Without a kubeconfig of its own it has the administrator's.
func (f *Fleet) Spawn(task Task) (*Process, error) {
	task.Kubeconfig, task.Domain = cmp.Or(task.Kubeconfig, f.Env.Kubeconfig()), Domain
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(f.Env.Dir(), "task-")
	if err != nil {
		return nil, err
	}
	_, err = file.Write(text)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	events := make(chan Event, 100)
	p := &Process{Events: events, cmd: exec.Command(os.Args[0]), output: &bytes.Buffer{}, file: file.Name()}
	p.cmd.ExtraFiles, p.cmd.Stdout, p.cmd.Stderr = []*os.File{write}, p.output, p.output
	p.cmd.Env = append(os.Environ(), childEnv+"="+p.file)
	f.Env.Mark(p.cmd)
	err = p.cmd.Start()
	_ = write.Close()
	if err != nil {
		_ = read.Close()
		return nil, err
	}
	go func() {
		defer close(events)
		defer read.Close()
		for lines := json.NewDecoder(read); ; {
			var e Event
			if lines.Decode(&e) != nil { // the end, or half a line of one that was killed
				return
			}
			events <- e
		}
	}()
	return p, nil
}

// Kill ends the process as a crash does.
func (p *Process) Kill() {
	if p.ended {
		return
	}
	_ = p.cmd.Process.Kill()
	for range p.Events { // until the pipe is closed
	}
	p.reap()
}

// Dump ends the process, and returns what it has printed, last of all where each of its goroutines was.
func (p *Process) Dump() string {
	if !p.ended {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		for range p.Events { // until the pipe is closed
		}
	}
	return p.End().Output
}

// reap waits for a process that ends.
func (p *Process) reap() {
	if p.ended {
		return
	}
	p.ended = true
	_ = p.cmd.Wait()
	_ = os.Remove(p.file)
}

// An End is how a process has ended.
type End struct {
	// Itself says that it has ended by itself, not by a signal.
	Itself bool
	// Code is its exit code; -1 after a signal.
	Code int
	// Output is what it has printed.
	Output string
}

// End returns how the process has ended, after [Process.Kill] or once Events are closed. A process that had ended before it was killed has ended by itself.
func (p *Process) End() End {
	p.reap()
	return End{Itself: p.cmd.ProcessState.Exited(), Code: p.cmd.ProcessState.ExitCode(), Output: p.output.String()}
}

// PID is that of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Thaw lets a process go on that has frozen itself.
func (p *Process) Thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Await waits for an event of a kind, and drops those before it.
func (p *Process) Await(ctx context.Context, kind Kind, within time.Duration) (what string, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		select {
		case e, ok := <-p.Events:
			if err := p.Fault(e, ok); err != nil {
				return "", err
			}
			if e.Kind == kind {
				return e.What, nil
			}
		case <-ctx.Done():
			return "", fmt.Errorf("a controller has not said %q for %s", kind, within)
		}
	}
}

// Alive drops the events so far, and returns an error if the process has failed.
func (p *Process) Alive() error {
	for {
		select {
		case e, ok := <-p.Events:
			if err := p.Fault(e, ok); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// Fault is the error of what was received from Events, if it is one.
func (p *Process) Fault(e Event, ok bool) error {
	if !ok {
		p.reap()
		return fmt.Errorf("a controller has ended by itself; it printed %s", p.output)
	}
	if e.Kind == Failed {
		return fmt.Errorf("a controller has failed: %s", e.What)
	}
	return nil
}
