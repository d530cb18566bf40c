// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/process"
	"github.com/belayproject/belay/lkg"
)

// Options of a [Supervisor]. A zero duration means the default that its comment names.
type Options struct {
	// Command prepares the next start and returns the command to run; last tells how the previous child ended, and is the
	// zero Exit for the first. It is where a config is chosen, reported and written: Syncer.Bootstrap, Syncer.Announce,
	// then the file. The Supervisor starts the command in a process group of its own. It must come from exec.Command: one
	// that is bound to a context would be killed by it without Grace. An error is retried after the backoff, unless it
	// wraps a *lkg.BaselineError or
	// [ErrFatal]: then Run returns it. Run also returns an error in whose chain is ErrFatal if Command returns (nil,
	// nil).
	//
	// A command that can't be executed is no crash of the config: it is an lkg.FaultNotExecuted, which counts against no
	// config. Where the config chooses the program, Command must return an error if there is no such program: an error
	// counts against the config. Required.
	Command func(ctx context.Context, last lkg.Exit) (*exec.Cmd, error)
	// Grace is how long a child may take to end after SIGTERM before it gets SIGKILL: 30 s.
	Grace time.Duration
	// BackoffMin and BackoffMax bound the wait before a child that ended on its own is started again: 1 s and 10 s.
	BackoffMin, BackoffMax time.Duration
	// Steady is how long a child must have run for the backoff to begin anew: 1 min.
	Steady time.Duration
	// Attribute, if not nil, completes what is known about an end of the child that was not asked for: whether what
	// every config needs has failed. It has 5 s; after that, and if it panics, the end stays as it is. AttributeExit
	// of kubelet.Witness is made for it.
	Attribute func(ctx context.Context, e lkg.Exit) lkg.Exit
	// OnExit, if not nil, is told of each end of a child, and of each child that could not be started. It must not block.
	// planned says that Restart, or the end of Run, asked for it.
	OnExit func(exit lkg.Exit, planned bool)
}

// ErrFatal in the chain of an error of Options.Command ends [Supervisor.Run]. Run returns it as well if Options.Command
// returns neither a command nor an error.
var ErrFatal = errors.New("retrying does not help")

// A Supervisor runs a child process, starts it again when it ends, and restarts it on request. It is a
// configsync.Restarter and a configsync.Probe. Make it with [NewSupervisor], call Run once; the other methods may be
// called from any goroutine.
type Supervisor struct {
	o    Options
	asks chan ask

	ended chan struct{} // closed when Run has returned

	mu    sync.Mutex // guards what follows
	child *child
	last  lkg.Exit
	dead  bool // the last child has ended on its own, or could not be started, and no other runs
	begun bool
}

// ask is a request for a restart; done is closed once the old child is gone.
type ask struct{ done chan struct{} }

// NewSupervisor returns a Supervisor that runs nothing yet. The error names the option that is wrong.
func NewSupervisor(o Options) (*Supervisor, error) {
	err := option.CheckRequired("configsync/restart.NewSupervisor", "Options.Command", o.Command, "what makes the child")
	if err != nil {
		return nil, err
	}
	for _, d := range []struct {
		name string
		v    *time.Duration
		def  time.Duration
	}{
		{"Grace", &o.Grace, 30 * time.Second}, {"BackoffMin", &o.BackoffMin, time.Second},
		{"BackoffMax", &o.BackoffMax, 10 * time.Second}, {"Steady", &o.Steady, time.Minute},
	} {
		if *d.v < 0 {
			return nil, fmt.Errorf("restart: Options.%s is %s, must be positive, or 0 for %s", d.name, *d.v, d.def)
		}
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	o.BackoffMax = max(o.BackoffMax, o.BackoffMin)
	return &Supervisor{o: o, asks: make(chan ask), ended: make(chan struct{})}, nil
}

// Run runs the child again and again until ctx ends, then stops it, within Grace, and returns nil. It returns an error
// of Options.Command that retrying does not help.
func (s *Supervisor) Run(ctx context.Context) error {
	if s.ended == nil {
		return option.NotMade("configsync/restart.Supervisor.Run", "configsync/restart.NewSupervisor")
	}
	s.mu.Lock()
	again := s.begun
	s.begun = true
	s.mu.Unlock()
	if again {
		return errors.New("restart: Run was called twice")
	}
	defer close(s.ended)
	var last lkg.Exit
	retry := backoff.Backoff{First: s.o.BackoffMin, Most: s.o.BackoffMax}
	for ctx.Err() == nil {
		ran, asked, err := s.runOnce(ctx, &last)
		if err != nil {
			return err
		}
		if asked || ran >= s.o.Steady {
			retry.Reset()
		}
		var wait time.Duration
		if !asked {
			wait = retry.Next()
		}
		s.pause(ctx, wait)
	}
	return nil
}

// runOnce is one start of the child up to its end. A start that could not be made counts as a run of no length. asked
// says that the next start was asked for, and must not wait.
func (s *Supervisor) runOnce(ctx context.Context, last *lkg.Exit) (ran time.Duration, asked bool, err error) {
	cmd, err := s.o.Command(ctx, *last)
	if err != nil {
		var baseline *lkg.BaselineError
		if errors.As(err, &baseline) || errors.Is(err, ErrFatal) {
			return 0, false, fmt.Errorf("preparing a start: %w", err)
		}
		*last = lkg.Exit{Detail: "the start was not prepared: " + err.Error(), Signature: "the start was not prepared"}
		return 0, false, nil
	}
	if ctx.Err() != nil {
		return 0, false, nil
	}
	c, err := begin(cmd)
	if errors.Is(err, process.ErrNoCommand) {
		return 0, false, fmt.Errorf("restart: Options.Command returned neither a command nor an error: %w", ErrFatal)
	}
	if err != nil {
		*last = notExecuted(err)
		s.tell(*last, false)
		return 0, false, nil
	}
	s.set(c)
	planned, done := s.attend(ctx, c)
	s.set(nil)
	*last = c.exit(planned)
	if !planned {
		*last = attributeExit(ctx, s.o.Attribute, *last)
	}
	s.tell(*last, planned)
	if done != nil {
		close(done)
	}
	return c.group.Ran(), done != nil, nil
}

// attend waits for the end of a child, and brings it about when asked to; done is then to be closed. A child that was
// gone before it was asked to go has ended on its own.
func (s *Supervisor) attend(ctx context.Context, c *child) (planned bool, done chan struct{}) {
	select {
	case <-c.group.Done():
		return false, nil
	case <-ctx.Done():
	case a := <-s.asks:
		done = a.done
	}
	select {
	case <-c.group.Done():
		return false, done
	default:
		c.stop(s.o.Grace)
		return true, done
	}
}

// pause waits before the next start; a request for a restart cuts it short.
func (s *Supervisor) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case a := <-s.asks:
		close(a.done)
	}
}

// Restart stops the child and returns once it is gone; the next one is started at once. It returns the error of ctx if
// that ends first, and an error if Run has returned.
func (s *Supervisor) Restart(ctx context.Context, _ configsync.Change) error {
	a := ask{done: make(chan struct{})}
	select {
	case s.asks <- a:
	case <-s.ended:
		return errors.New("restart: the supervisor has ended")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Name implements configsync.Probe.
func (s *Supervisor) Name() string { return "child" }

// Check returns nil while a child runs, and otherwise how the last one ended. A Syncer whose Restarter is a
// Supervisor counts it among its probes, so that no trial is credited with the time between two children.
func (s *Supervisor) Check(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.child != nil:
		return nil
	case s.dead:
		return &deadError{s.last}
	default:
		return errors.New("no child runs")
	}
}

// deadError means that the last child has ended on its own. Its text is the same for two ends with one cause.
type deadError struct{ exit lkg.Exit }

// Error says how it ended.
func (e *deadError) Error() string { return "ended: " + cmp.Or(e.exit.Signature, e.exit.Detail) }

// Ended tells a Syncer that the child is not merely about to be started.
func (e *deadError) Ended() bool { return true }

// PID returns the process ID of the running child, or 0.
func (s *Supervisor) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child == nil {
		return 0
	}
	return s.child.group.PID()
}

func (s *Supervisor) set(c *child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.child = c
	if c != nil {
		s.dead = false
	}
}

// LastExit says how the last child ended; zero while none has.
func (s *Supervisor) LastExit() lkg.Exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *Supervisor) tell(e lkg.Exit, planned bool) {
	s.mu.Lock()
	s.last, s.dead = e, !planned
	s.mu.Unlock()
	if s.o.OnExit != nil {
		s.o.OnExit(e, planned)
	}
}
