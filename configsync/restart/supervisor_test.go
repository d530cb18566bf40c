// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/lkg"
)

var _ configsync.Restarter = (*restart.Supervisor)(nil)

var adopt = configsync.Change{Kind: configsync.Adopt, Why: "a test"}

func (r *rig) restart() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	if err := r.Restart(ctx, adopt); err != nil {
		r.t.Fatalf("Restart = %v", err)
	}
}

// R-CS-39: the next child starts when the old one is gone, never beside it, and is told that the end was asked for.
func TestRestartEndsOneChildBeforeTheNext(t *testing.T) {
	r := begin(t, restart.Options{BackoffMin: time.Hour}, "lock "+filepath.Join(t.TempDir(), "lock"))
	if first := next(t, r.starts); first.Kind != "" || first.Detail != "" {
		t.Errorf("the first start is told %+v, want nothing", first)
	}
	for range 3 {
		pid, lock := r.up()
		if told := r.running(); lock != "<nil>" || told != pid {
			t.Fatalf("child %d runs beside another (%s), or is not the one that PID tells: %d", pid, lock, told)
		}
		r.restart()
		if alive(pid) || r.PID() == pid {
			t.Errorf("after Restart the old child %d is alive", pid)
		}
		e := next(t, r.exits)
		if !e.planned || e.Kind != lkg.ExitPlanned || !strings.HasPrefix(e.Detail, "stopped on request after ") {
			t.Errorf("a restart is told as %+v", e)
		}
		if last := next(t, r.starts); !reflect.DeepEqual(last, e.Exit) || !reflect.DeepEqual(r.LastExit(), last) {
			t.Errorf("the next start is told %+v, and LastExit gives %+v; want %+v", last, r.LastExit(), e.Exit)
		}
	}
	r.up()
}

func TestStubbornChildIsKilledAfterGrace(t *testing.T) {
	r := begin(t, restart.Options{Grace: 20 * time.Millisecond}, "stubborn", "wait")
	pid, _ := r.up()
	r.restart()
	if e := next(t, r.exits); !e.planned || e.Kind != lkg.ExitPlanned || !strings.Contains(e.Detail, "SIGKILL") || alive(pid) {
		t.Errorf("a stubborn child ended as %+v, alive: %t", e, alive(pid))
	}
	r.up()
}

// How a child ended on its own is evidence about its config.
func TestExitsAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		role, detail string
		kind         lkg.ExitKind
		kill         bool
	}{
		"bad status": {"exit 3", "exit status 3 after ", lkg.ExitCrash, false},
		"status 0":   {"exit 0", "exit status 0 after ", lkg.ExitClean, false},
		"killed":     {"wait", "signal: killed after ", lkg.ExitCrash, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := begin(t, restart.Options{BackoffMin: time.Millisecond}, c.role, "wait")
			next(t, r.starts)
			pid, _ := r.up()
			if c.kill {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			e := next(t, r.exits)
			if e.planned || e.Kind != c.kind || !strings.HasPrefix(e.Detail, c.detail) {
				t.Errorf("told as %+v, want kind %q, %q, not planned", e, c.kind, c.detail)
			}
			if last := next(t, r.starts); !reflect.DeepEqual(last, e.Exit) {
				t.Errorf("the next start is told %+v, want %+v", last, e.Exit)
			}
			r.up()
		})
	}
}

// A child that keeps crashing is started ever more rarely.
func TestBackoffGrows(t *testing.T) {
	began := make(chan time.Time, 100)
	o := restart.Options{BackoffMin: 4 * time.Millisecond, BackoffMax: time.Hour, Steady: time.Hour}
	o.Command = func(context.Context, lkg.Exit) (*exec.Cmd, error) {
		began <- time.Now()
		return self("exit 1"), nil
	}
	r := begin(t, o)
	next(t, began)
	for wait := o.BackoffMin; wait < 200*time.Millisecond; wait *= 2 {
		ended := next(t, r.exits).at
		if waited := next(t, began).Sub(ended); waited < wait {
			t.Errorf("started again after %v, want at least %v", waited, wait)
		}
	}
}

// The backoff is bounded, and begins anew after a run that was long enough. Without that these would take years.
func TestBackoffIsBoundedAndReset(t *testing.T) {
	for name, o := range map[string]restart.Options{
		"bounded": {BackoffMin: time.Millisecond, BackoffMax: 2 * time.Millisecond, Steady: time.Hour},
		"reset":   {BackoffMin: time.Millisecond, BackoffMax: 1000 * time.Hour, Steady: time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			r := begin(t, o, "exit 1")
			for range 30 {
				next(t, r.exits)
			}
		})
	}
}

// A new config ends the wait that the old one's crashes have earned.
func TestRestartCutsTheBackoffShort(t *testing.T) {
	r := begin(t, restart.Options{BackoffMin: time.Hour, BackoffMax: time.Hour}, "exit 1", "wait")
	next(t, r.starts)
	e := next(t, r.exits)
	r.restart()
	if last := next(t, r.starts); !reflect.DeepEqual(last, e.Exit) {
		t.Errorf("the next start is told %+v, want the crash %+v", last, e.Exit)
	}
	r.up()
}

// What keeps a start from being prepared may pass: a full disk, for example. It is tried again.
func TestPreparationIsRetried(t *testing.T) {
	n := 0
	var r *rig
	ready := make(chan struct{})
	garbage := filepath.Join(t.TempDir(), "kubelet") // ENOEXEC
	if err := os.WriteFile(garbage, []byte{0x7f, 'E', 'L'}, 0o700); err != nil {
		t.Fatal(err)
	}
	r = begin(t, restart.Options{BackoffMin: time.Millisecond, Command: func(context.Context, lkg.Exit) (*exec.Cmd, error) {
		<-ready
		n++
		switch n {
		case 1:
			return nil, errors.New("disk is full")
		case 2:
			return exec.Command("/nonexistent/kubelet"), nil
		case 3:
			return exec.Command(garbage), nil
		}
		c := self("wait")
		c.Stdout = r.out
		return c, nil
	}})
	close(ready)
	next(t, r.starts)
	if last := next(t, r.starts); last.Kind != "" || !strings.Contains(last.Detail, "disk is full") {
		t.Errorf("after a failed preparation: %+v", last)
	}
	if last := next(t, r.starts); last.Fault != lkg.FaultNotExecuted || !strings.Contains(last.Detail, "could not be started") {
		t.Errorf("after a failed start: %+v, want that nothing was executed", last)
	}
	if e := next(t, r.exits); e.planned || e.Fault != lkg.FaultNotExecuted {
		t.Errorf("a failed start is told as %+v, want that nothing was executed", e)
	}
	last := next(t, r.starts)
	if last.Fault != lkg.FaultNotExecuted || last.Signature != "could not be executed: exec format error" {
		t.Errorf("after a program that is none: %+v, want its fault and its signature, without a path", last)
	}
	r.up()
}

// R-CS-52, R-CS-53: where the local baseline is wrong, retrying doesn't help: Run ends and says why.
func TestFatalPreparationEndsRun(t *testing.T) {
	baseline := &lkg.BaselineError{Err: errors.New("field x")}
	for name, cause := range map[string]error{"baseline": fmt.Errorf("starting: %w", baseline), "fatal": fmt.Errorf("no kubelet: %w", restart.ErrFatal)} {
		t.Run(name, func(t *testing.T) {
			s, err := restart.NewSupervisor(restart.Options{
				Command: func(context.Context, lkg.Exit) (*exec.Cmd, error) { return nil, cause },
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := s.Run(ctx); !errors.Is(err, cause) {
				t.Errorf("Run = %v, want %v", err, cause)
			}
			if err := s.Restart(t.Context(), adopt); err == nil {
				t.Error("Restart of a supervisor that has ended succeeds")
			}
			if err := s.Run(t.Context()); err == nil {
				t.Error("Run succeeds twice")
			}
		})
	}
}

// No child, no child of a child, and no goroutine outlives Run.
func TestNothingOutlivesRun(t *testing.T) {
	r := begin(t, restart.Options{Grace: 20 * time.Millisecond}, "family stay")
	grandchild, _ := r.up()
	child := r.running()
	r.cancel()
	if err := next(t, r.result); err != nil {
		t.Errorf("Run = %v, want nil when its context ends", err)
	}
	r.result <- nil // for the cleanup
	if e := next(t, r.exits); !e.planned {
		t.Errorf("the end of Run is told as %+v", e)
	}
	if alive(child) || r.PID() != 0 {
		t.Errorf("child %d is alive, or PID tells one: %d", child, r.PID())
	}
	_ = r.out.Close()
	r.drained()
	gone(t, grandchild)
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if bytes.Contains(stacks, []byte("configsync/restart.(*child)")) || bytes.Contains(stacks, []byte("configsync/restart.(*Supervisor)")) {
		t.Errorf("a goroutine is left:\n%s", stacks)
	}
}

// What a child leaves behind in its group doesn't run beside the next one, and doesn't hold it up by the output
// that it shares.
func TestLeftoversAreKilled(t *testing.T) {
	n := 0
	var r *rig
	ready := make(chan struct{})
	r = begin(t, restart.Options{BackoffMin: time.Millisecond, Command: func(context.Context, lkg.Exit) (*exec.Cmd, error) {
		<-ready
		n++
		if n > 1 {
			return self("wait"), nil
		}
		c := self("family leave")
		c.Stdout = struct{ io.Writer }{r.out} // not a file: its end is waited for
		return c, nil
	}})
	close(ready)
	next(t, r.starts)
	leftover, _ := r.up()
	if e := next(t, r.exits); e.planned || e.Kind != lkg.ExitClean {
		t.Errorf("told as %+v, want a clean exit", e)
	}
	next(t, r.starts)
	gone(t, leftover)
}

// A killed agent leaves no child behind to run unwatched.
func TestKilledAgentTakesItsChildAlong(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills a child with its parent")
	}
	r := newRig(t)
	agent := self("agent")
	agent.Stdout = r.out
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	pid, _ := r.up()
	if !alive(pid) {
		t.Fatalf("child %d is not alive", pid)
	}
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait() // killed
	r.stop()         // waits until the child doesn't hold the pipe any more
}

// A Command that returns nothing is a mistake in the program: it must not end the process, and trying again does
// not help.
func TestCommandReturnsNothing(t *testing.T) {
	s, err := restart.NewSupervisor(restart.Options{Command: func(context.Context, lkg.Exit) (*exec.Cmd, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Run(t.Context())
	if !errors.Is(err, restart.ErrFatal) || !strings.Contains(err.Error(), "Options.Command returned neither a command nor an error") {
		t.Errorf("Run = %v, want ErrFatal that names Options.Command", err)
	}
}

func TestRestartEndsWithItsContext(t *testing.T) {
	s, err := restart.NewSupervisor(restart.Options{Command: func(context.Context, lkg.Exit) (*exec.Cmd, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := s.Restart(ctx, adopt); !errors.Is(err, cause) {
		t.Errorf("Restart of what does not run = %v, want %v", err, cause)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	command := func(context.Context, lkg.Exit) (*exec.Cmd, error) { return nil, nil }
	for want, o := range map[string]restart.Options{
		"Command": {}, "Grace": {Command: command, Grace: -1}, "BackoffMin": {Command: command, BackoffMin: -1},
		"BackoffMax": {Command: command, BackoffMax: -1}, "Steady": {Command: command, Steady: -1},
	} {
		if _, err := restart.NewSupervisor(o); err == nil || !strings.Contains(err.Error(), "Options."+want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
