// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
)

// stopTimeout bounds the end of a process that was asked to stop.
const stopTimeout = 30 * time.Second

// A Process is one that a test started.
type Process struct {
	cmd  *exec.Cmd
	log  *testproc.Buffer
	done chan struct{} // closed when the process ended
	err  error         // how; read after done
}

// Start starts a command. It ends with the test at the latest, by SIGKILL.
func Start(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(name, args...), log: &testproc.Buffer{}, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("what %s (process %d) wrote:\n%s", name, p.PID(), p.Log())
		}
	})
	return p
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is what the process wrote so far.
func (p *Process) Log() string { return p.log.String() }

// Kill ends the process as a crash would, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// Stop asks the process to end and gives its exit status.
func (p *Process) Stop(t testing.TB) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	return p.Exit(t, stopTimeout)
}

// Exit waits for the end of the process and gives its exit status, -1 after a signal.
func (p *Process) Exit(t testing.TB, timeout time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(timeout):
		t.Fatalf("process %d did not end within %s", p.PID(), timeout)
		return 0
	}
}

// Running says, as an error, that the process ended and how.
func (p *Process) Running() error {
	select {
	case <-p.done:
		return fmt.Errorf("process %d ended: %w", p.PID(), p.err)
	default:
		return nil
	}
}

// Logged says, as an error, that the process wrote text fewer than n times.
func (p *Process) Logged(text string, n int) error {
	if got := strings.Count(p.Log(), text); got < n {
		return fmt.Errorf("process %d wrote %q %d times, want %d", p.PID(), text, got, n)
	}
	return nil
}
