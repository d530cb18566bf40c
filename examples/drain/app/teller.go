// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"os"
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

// follow runs a set and shows how it goes. What somebody has to act on first, before waiting makes sense, ends it: a fleet that is frozen
// while nodes are given back, and a Node that may not be written, whose error is returned.
func (t *teller) follow(ctx context.Context, c *cluster, s drain.Set) (drain.SetStatus, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	defer func() { close(done); t.screen.Draw() }()
	if t.screen.Live() {
		go t.redraw(done)
	}
	var hopeless error
	st, err := c.drainer.Run(running, s, func(st drain.SetStatus) {
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
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = st
	switch {
	case hopeless != nil:
		err = hopeless
	case ctx.Err() == nil && errors.Is(err, context.Canceled): // it was ended here
		err = nil
	}
	return st, err
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
