// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest

import (
	"context"
	"errors"
	"time"

	"github.com/belayproject/belay/lkg"
)

// A Rule decides which configs of a node are good and which are bad. [Histories] plays lives of nodes under it.
type Rule struct {
	// Name of the rule in a table.
	Name string
	// Open makes the tracker at the start of each process.
	Open func(ctx context.Context, s lkg.Store, o lkg.Options) (Tracker, error)
}

// Belay is the rule of package lkg: count the ends that nothing explains, promote what was healthy for long enough.
func Belay() Rule {
	return Rule{"belay", func(ctx context.Context, s lkg.Store, o lkg.Options) (Tracker, error) {
		return lkg.NewTracker(ctx, s, o)
	}}
}

// CountAndClock is the rule that the kubelet's dynamic config was designed with: every restart in the trial counts,
// whatever caused it, and what was not found bad when the trial is over by the clock is good. It was withdrawn before
// it was released, for what the table of [Histories] shows.
func CountAndClock() Rule {
	open := func(ctx context.Context, s lkg.Store, o lkg.Options) (Tracker, error) {
		return openClocked(ctx, s, o, lkg.Exit{})
	}
	return Rule{"count every restart, promote by the clock", open}
}

// ClockAlone is the rule that the kubelet's dynamic config was released with: restarts are not counted, and what passes
// its checks is good when ten minutes, here the trial, are over by the clock.
func ClockAlone() Rule {
	return Rule{"promote by the clock alone", func(ctx context.Context, s lkg.Store, o lkg.Options) (Tracker, error) {
		return openClocked(ctx, s, o, lkg.Exit{Kind: lkg.ExitPlanned})
	}}
}

// clocked is a tracker that knows of restarts and of the wall clock, and of nothing else.
type clocked struct {
	*lkg.Tracker
	now     func() time.Time
	exit    lkg.Exit // what it takes every restart for
	limits  lkg.Limits
	started bool // a start that Decide records: only then the limits are known
}

func openClocked(ctx context.Context, s lkg.Store, o lkg.Options, exit lkg.Exit) (Tracker, error) {
	o.BootID = ""
	t, err := lkg.NewTracker(ctx, s, o)
	return &clocked{Tracker: t, now: o.Now, exit: exit}, err
}

func (c *clocked) PlanRestart(context.Context, lkg.Cause) error { return nil }

func (c *clocked) Start(context.Context, lkg.Exit) error {
	c.started = true
	return nil
}

// Decide lets the clock promote what ran before, records the start, and counts.
func (c *clocked) Decide(
	ctx context.Context, limits func(lkg.Ref) lkg.Limits, check func(lkg.Ref) lkg.Check,
) (lkg.Verdict, error) {
	if limits != nil {
		c.limits = limits(c.State().Current.Ref)
	}
	if _, err := c.promote(ctx); err != nil {
		return lkg.Verdict{}, err
	}
	if c.started {
		c.started = false
		if err := c.Tracker.Start(ctx, c.exit); err != nil {
			return lkg.Verdict{}, err
		}
	}
	v, err := c.Tracker.Decide(ctx, limits, check)
	if err != nil || v.Case == nil || v.Role == lkg.RoleCurrent {
		return v, err
	}
	if err := c.Tracker.Reject(ctx, c.State().Current.Ref, v.Condition.Reason); err != nil { // the count is the proof
		return v, err
	}
	return c.Tracker.Decide(ctx, limits, check)
}

func (c *clocked) Healthy(ctx context.Context, _ lkg.Health) (lkg.Progress, error) {
	return c.promote(ctx)
}

// promote makes good what was not found bad when the trial is over by the wall clock.
func (c *clocked) promote(ctx context.Context) (lkg.Progress, error) {
	s := c.State()
	if !s.OnTrial() || c.now().Sub(s.Current.At) <= (lkg.Bounds{}).Clamp(c.limits).Trial {
		return lkg.Progress{}, nil
	}
	err := c.Tracker.Promote(ctx)
	if errors.Is(err, lkg.ErrNotRunning) || errors.Is(err, lkg.ErrRejected) {
		return lkg.Progress{}, nil
	}
	if err != nil {
		return lkg.Progress{}, err
	}
	return lkg.Progress{Result: lkg.ResultPromoted, Why: "the trial is over by the clock"}, nil
}
