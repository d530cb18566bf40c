// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/option"
)

// Bounds of the time after a pass with an error.
const (
	retryMin = time.Second
	retryMax = time.Minute
)

// ErrRunning means that Run was called while another Run of the same value goes on.
var ErrRunning = errors.New("already running")

// Run makes a pass whenever there is a value in wake, and when a pass has asked for it, until ctx ends; then it
// returns nil. Whoever watches nodes, shadows, rollouts and drains puts it there, into a channel with a place for
// one. Errors are logged; a pass with one is followed by the next after a time that grows, and not sooner than a
// second by a wake-up. A pass that has written nothing new, while no slot goes on, is followed by a rest, which a
// wake-up does not end unless people want something else ([Rollouts].Asked): thirty times as long as the pass took,
// and two seconds at most. So kubelets that write their Nodes, and pods that come and go, keep a controller of
// thousands of nodes at work for a small share of the time, and not for all of it. A second Run while the first one
// goes on is [ErrRunning]. A process that leads again makes a [New] controller, as what this one remembers may not be
// true any more.
func (c *Controller) Run(ctx context.Context, wake <-chan struct{}) error {
	if c.o.Ledger == nil {
		return option.NotMade("rollout/controller.Controller.Run", "rollout/controller.New")
	}
	if !c.running.CompareAndSwap(false, true) {
		return fmt.Errorf("rollout/controller: Controller.Run: %w", ErrRunning)
	}
	defer c.running.Store(false)
	retry := backoff.Backoff{First: retryMin, Most: retryMax}
	for ctx.Err() == nil {
		e, after, err := c.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			delay := retry.Next()
			klog.FromContext(ctx).Info("Rollout pass failed", "err", err, "again", delay)
			pause(ctx, nil, retryMin)
			later := jittered(delay) - retryMin/2
			if asked := after - retryMin; after > 0 && asked < later {
				later = asked // what other nodes wait for does not wait for the one with the error
			}
			after = max(soon, later)
		default:
			retry.Reset()
			rest := e.rest(after)
			if c.sleep(ctx, wake, rest, e.asked) {
				continue
			}
			if after > 0 {
				after = max(soonest, after-rest)
			}
		}
		pause(ctx, wake, after)
	}
	return nil
}

const (
	// restTimes is how many times as long as the pass before it a rest is, longestRest how long at most.
	restTimes   = 30
	longestRest = 2 * time.Second
	soonest     = time.Nanosecond // zero would be for ever
)

// rest is how long wake-ups wait after a pass that asks for the next one after that time, if it does.
func (e effort) rest(after time.Duration) time.Duration {
	if e.writes > 0 || e.inFlight {
		return 0
	}
	d := min(restTimes*e.took, longestRest)
	if after > 0 {
		d = min(d, after)
	}
	return d
}

// sleep waits for that time, or until people want something else than what was asked. It reports whether there was a
// wake-up.
func (c *Controller) sleep(ctx context.Context, wake <-chan struct{}, d time.Duration, asked string) (woken bool) {
	if d <= 0 {
		return false
	}
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		select {
		case <-ctx.Done():
			return woken
		case <-over.C:
			return woken
		case <-wake:
			woken = true
			if c.o.Rollouts.Asked() != asked {
				return true
			}
		}
	}
}

// pause waits for that time, or for ever if it is zero, or for a wake-up.
func pause(ctx context.Context, wake <-chan struct{}, d time.Duration) {
	var over <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-ctx.Done():
	case <-wake:
	case <-over:
	}
}

// jittered takes up to a half from d.
func jittered(d time.Duration) time.Duration { return backoff.Jitter(d, 0.5, 1, nil) }
