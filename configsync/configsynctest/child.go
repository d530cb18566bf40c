// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsynctest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// Conduct is what a config makes a [Child] do.
type Conduct struct {
	// CrashAfter, where positive, ends the child that long after its start.
	CrashAfter time.Duration
	// Sick makes its probe fail.
	Sick error
}

// A Child stands for the configured process under its supervisor: it is a configsync.Restarter and a configsync.Probe,
// and its Run starts the process again and again as a supervisor does.
type Child[T any] struct {
	// Conduct says what a config does to the child. Nil means that every config is good.
	Conduct func(cfg T) Conduct
	// Delay is the time between the end of a child and the next start: 1 s by default.
	Delay time.Duration

	mu      sync.Mutex
	starts  []lkg.Ref
	running bool
	ended   lkg.Exit // how the last one ended on its own; zero after an end that was asked for
	sick    error
	stop    chan struct{}
	between bool // a start is being prepared: a restart that is asked for now must reach the child that it leads to
	pending bool
}

// Starts returns the configs of all starts so far, in order.
func (c *Child[T]) Starts() []lkg.Ref {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]lkg.Ref(nil), c.starts...)
}

// Kill ends the running child as a crash would.
func (c *Child[T]) Kill() { c.end(false) }

// Name implements configsync.Probe.
func (c *Child[T]) Name() string { return "child" }

// Check implements configsync.Probe.
func (c *Child[T]) Check(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.running:
		return c.sick
	case c.ended.Kind != "":
		return endedError("ended: " + c.ended.Detail)
	default:
		return errors.New("child is not running")
	}
}

// endedError tells a Syncer that the child has ended on its own.
type endedError string

func (e endedError) Error() string { return string(e) }

// Ended implements what configsync.Options asks of a Restarter.
func (e endedError) Ended() bool { return true }

// Restart implements configsync.Restarter.
func (c *Child[T]) Restart(context.Context, configsync.Change) error {
	c.end(true)
	return nil
}

// end stops the running child. Whether it was asked for shows in the way Run sees it end.
func (c *Child[T]) end(asked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop == nil {
		c.pending = asked && c.between
		return
	}
	if asked {
		c.stop <- struct{}{}
	} else {
		close(c.stop)
	}
	c.stop = nil
}

// Run starts the child with what Bootstrap returns, and starts it again whenever it has ended, until ctx ends. It
// returns the error of Bootstrap when that refuses.
func (c *Child[T]) Run(ctx context.Context, s *configsync.Syncer[T]) error {
	exit := lkg.Exit{}
	for ctx.Err() == nil {
		c.prepare()
		a, err := s.Bootstrap(ctx, exit)
		if err != nil {
			return fmt.Errorf("starting the child: %w", err)
		}
		_ = s.Announce(ctx) // a report that doesn't land never stops a start
		exit = c.liveOnce(ctx, a)
		delay := c.Delay
		if delay == 0 {
			delay = time.Second
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
	return nil
}

func (c *Child[T]) prepare() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.between, c.pending = true, false
}

// liveOnce is one life of the child.
func (c *Child[T]) liveOnce(ctx context.Context, a configsync.Active[T]) (exit lkg.Exit) {
	var do Conduct
	if c.Conduct != nil {
		do = c.Conduct(a.Config)
	}
	stop := make(chan struct{}, 1)
	c.mu.Lock()
	c.starts = append(c.starts, a.Ref)
	c.running, c.sick, c.stop = true, do.Sick, stop
	if c.pending {
		stop <- struct{}{}
		c.stop = nil
	}
	c.between, c.pending = false, false
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.running, c.stop, c.ended = false, nil, lkg.Exit{}
		if exit.Kind == lkg.ExitCrash {
			c.ended = exit
		}
		c.mu.Unlock()
	}()
	var crash <-chan time.Time
	if do.CrashAfter > 0 {
		crash = time.After(do.CrashAfter)
	}
	select {
	case <-ctx.Done():
		return lkg.Exit{Kind: lkg.ExitClean}
	case <-crash:
		return lkg.Exit{Kind: lkg.ExitCrash, Detail: "exit status 1"}
	case _, asked := <-stop:
		if asked {
			return lkg.Exit{Kind: lkg.ExitPlanned}
		}
		return lkg.Exit{Kind: lkg.ExitCrash, Detail: "signal: killed"}
	}
}

// A Recorder is a configsync.Reporter that keeps what it is told. The zero value works.
type Recorder struct {
	mu  sync.Mutex
	got []configsync.Status
	err error
}

// Fail makes reports fail with err, or land again for nil.
func (r *Recorder) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// Report implements configsync.Reporter.
func (r *Recorder) Report(_ context.Context, s configsync.Status) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	r.got = append(r.got, s)
	return nil
}

// All returns every status that landed.
func (r *Recorder) All() []configsync.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]configsync.Status(nil), r.got...)
}

// Last returns the newest status that landed; the zero Status if none did.
func (r *Recorder) Last() configsync.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got) == 0 {
		return configsync.Status{}
	}
	return r.got[len(r.got)-1]
}
