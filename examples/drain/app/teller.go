// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/drain/internal/report"
	"github.com/belayproject/belay/examples/drain/internal/screen"
)

// redrawEvery is how often times on the screen go on.
const redrawEvery = time.Second

// A teller shows the progress of a drain. Its methods may be called concurrently.
type teller struct {
	screen *screen.Screen

	mu     sync.Mutex // guards what follows
	log    report.Log
	last   drain.SetStatus
	cache  drain.Cache // nil before the cluster has been seen
	nodes  []string
	holder string
}

// tellerFor shows progress where the result doesn't go, if a program reads that.
func (a *app) tellerFor(json bool) *teller {
	if json {
		return &teller{screen: screen.New(a.errs, os.Getenv)}
	}
	return &teller{screen: screen.New(a.out, os.Getenv)}
}

// say prints lines that stay.
func (t *teller) say(lines ...string) {
	if len(lines) > 0 {
		t.screen.Say(lines...)
	}
}

// sees gives what is needed to say what is left behind.
func (t *teller) sees(cache drain.Cache, nodes []string, holder string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cache, t.nodes, t.holder = cache, nodes, holder
}

// timeoutGrace is how long after --timeout a drain may take to say how it ended.
const timeoutGrace = 3 * time.Second

// outcome is how a run of a set ended.
type outcome struct {
	status drain.SetStatus
	err    error
}

// follow runs a set and shows how it goes. What somebody has to act on first, before waiting makes sense, ends it: a fleet that is frozen
// while nodes are given back, and a Node that may not be written, whose error is returned. --timeout ends it also
// where the API server is away.
func (t *teller) follow(ctx context.Context, c *cluster, s drain.Set) (drain.SetStatus, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	defer func() { close(done); t.screen.Draw() }()
	if t.screen.Live() {
		go t.redraw(done)
	}
	ended := make(chan outcome, 1)
	go func() { ended <- t.runSet(running, stop, c, s) }()
	var o outcome
	select {
	case o = <-ended:
	case <-afterDeadline(ctx, s.Request.Deadline):
		o.status = t.timedOut()
	}
	if cause := c.reach.downCause(); cause != nil {
		o.status = withCause(o.status, cause)
	}
	if c.deletes {
		o.status = asForced(o.status)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = o.status
	if ctx.Err() == nil && errors.Is(o.err, context.Canceled) { // it was ended here
		o.err = nil
	}
	return o.status, o.err
}

// runSet runs a set until it is done, or waiting makes no sense.
func (t *teller) runSet(ctx context.Context, stop func(), c *cluster, s drain.Set) outcome {
	var hopeless error
	st, err := c.drainer.Run(ctx, s, func(st drain.SetStatus) {
		if c.deletes {
			st = asForced(st)
		}
		t.report(st)
		select {
		case hopeless = <-c.client.denied:
			stop()
		default:
		}
		if s.Request.Mode == drain.Release && st.Reason == drain.Frozen {
			stop()
		}
	})
	if hopeless != nil {
		err = hopeless
	}
	return outcome{st, err}
}

// afterDeadline returns a channel that is closed when a drain has outlived its deadline. It is not while the nodes are
// given back after Ctrl-C.
func afterDeadline(ctx context.Context, deadline time.Time) <-chan struct{} {
	over := make(chan struct{})
	if !deadline.IsZero() {
		time.AfterFunc(time.Until(deadline)+timeoutGrace, func() {
			if ctx.Err() == nil {
				close(over)
			}
		})
	}
	return over
}

// timedOut is the status of a drain that has not ended by itself. The nodes stay as they are.
func (t *teller) timedOut() drain.SetStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	const why = "--timeout is over, and requests are still under way"
	st := t.last
	st.Nodes = slices.Clone(st.Nodes)
	for i := range st.Nodes {
		if n := &st.Nodes[i]; n.Phase != drain.Drained && n.Phase != drain.Failed {
			n.Outcome, n.Reason, n.Message = drain.OutcomeBlocked, "DeadlinePassed", why
		}
	}
	if len(st.Nodes) == 0 {
		for _, name := range t.nodes {
			st.Nodes = append(st.Nodes, drain.Status{
				Node: name, Phase: drain.Pending, Outcome: drain.OutcomeBlocked, Reason: "DeadlinePassed", Message: why,
			})
		}
	}
	return st
}

// withCause says of each blocked node why the API server does not answer.
func withCause(st drain.SetStatus, cause error) drain.SetStatus {
	st.Nodes = slices.Clone(st.Nodes)
	for i := range st.Nodes {
		if n := &st.Nodes[i]; n.Outcome == drain.OutcomeBlocked {
			n.Message = strings.TrimPrefix(n.Message+"; the API server does not answer: "+cause.Error(), "; ")
		}
	}
	return st
}

// reportReach says that the API server does not answer any more, or answers again.
func (t *teller) reportReach(cause error) {
	if cause == nil {
		t.say("The API server answers again.")
		return
	}
	t.say(fmt.Sprintf("The API server does not answer: %v. Nothing moves until it does.", cause))
}

// report shows a status.
func (t *teller) report(st drain.SetStatus) {
	t.mu.Lock()
	t.last = st
	lines := t.log.Next(st, time.Now())
	t.mu.Unlock()
	if t.screen.Live() {
		t.draw()
	} else {
		t.say(lines...)
	}
}

// redraw lets the times go on until done is closed.
func (t *teller) redraw(done <-chan struct{}) {
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			t.draw()
		}
	}
}

func (t *teller) draw() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.last.Nodes) > 0 {
		t.screen.Draw(report.Live(t.last, time.Now())...)
	}
}
