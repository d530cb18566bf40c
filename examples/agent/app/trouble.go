// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"sync"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/internal/agent/drift"
	"github.com/belayproject/belay/lkg"
)

// trouble is what keeps the child from running, or the node from its remote config, and is no matter of a config: the
// Syncer doesn't know of it, and the node must not be told that all is well meanwhile.
type trouble struct {
	// turn is held from the choice of a config until it is known whether the child can be started with it, so that no
	// report in between says more than is known.
	turn chan struct{}
	// drift is how the rendered file is not what was rendered. It is set before anything runs; nil asks nobody.
	drift func() drift.Finding
	// off says why a source is named and not looked at; empty where that is not so. It is set before anything runs.
	off string

	mu      sync.Mutex // guards what follows
	start   error      // why the child can't be started
	records error      // why the state directory can't be used
}

func newTrouble() *trouble { return &trouble{turn: make(chan struct{}, 1)} }

// hold makes reports wait until release. Only prepare calls it, one start at a time.
func (t *trouble) hold() { t.turn <- struct{}{} }

// release lets reports go on, with what is in the way of the start; nil is nothing.
func (t *trouble) release(start error) {
	t.mu.Lock()
	t.start = start
	t.mu.Unlock()
	<-t.turn
}

// inTheWay is what the last release was given.
func (t *trouble) inTheWay() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.start
}

// drifted reports whether the rendered file is not what was rendered.
func (t *trouble) drifted() bool { return t.drift != nil && t.drift() != (drift.Finding{}) }

// amend returns s with what is in the way. The texts hold paths and causes, no payload.
func (t *trouble) amend(s configsync.Status) configsync.Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.Alarm == "" && s.Condition != (lkg.Condition{}) && t.drifted() {
		s.Alarm = t.drift().String()
	}
	if t.off != "" && s.Condition != (lkg.Condition{}) {
		s.Condition.Message += "; " + t.off
	}
	switch {
	case s.Condition == (lkg.Condition{}): // no config is chosen yet
	case t.start != nil:
		s.Error = fmt.Sprintf("the child can't be started: %v", t.start)
		s.Condition = lkg.Condition{Status: lkg.StatusUnknown, Message: "using nothing, trying again", Reason: s.Error}
	case t.records != nil && s.Condition.Status == lkg.StatusTrue: // what is worse was said already
		s.Error = fmt.Sprintf("the state directory can't be used, so remote configs are left alone until the agent is restarted with a good one: %v", t.records)
		s.Condition = lkg.Condition{Status: lkg.StatusUnknown, Message: s.Condition.Message, Reason: s.Error}
	}
	return s
}

// reporter tells next what is in the way. A report that waits for a start beyond its deadline is sent again by the
// Syncer.
func (t *trouble) reporter(next configsync.Reporter) configsync.Reporter { return amended{t, next} }

type amended struct {
	*trouble
	next configsync.Reporter
}

// Report implements configsync.Reporter.
func (a amended) Report(ctx context.Context, s configsync.Status) error {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the start of the child: %w", ctx.Err())
	}
	s = a.amend(s)
	<-a.turn
	return a.next.Report(ctx, s)
}
