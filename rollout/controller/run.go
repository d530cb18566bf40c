// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/klog/v2"
)

// Bounds of the time after a pass with an error.
const (
	retryMin = time.Second
	retryMax = time.Minute
)

// Run calls [Controller.Pass] whenever there is a value in wake, and when a pass has asked for it, until ctx ends; then it returns nil. Whoever
// watches nodes, shadows, rollouts and drains puts it there, into a channel with a place for one. Errors are logged; a pass with one is
// followed by the next after a time that grows, and not sooner than a second by a wake-up. Call it once: who leads again makes a [New] controller, as what
// this one remembers may not be true any more.
func (c *Controller) Run(ctx context.Context, wake <-chan struct{}) error {
	retry := retryMin
	for ctx.Err() == nil {
		after, err := c.Pass(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			klog.FromContext(ctx).Info("Rollout pass failed", "err", err, "again", retry)
			pause(ctx, nil, retryMin)
			later := jittered(retry) - retryMin/2
			if asked := after - retryMin; after > 0 && asked < later {
				later = asked // what other nodes wait for does not wait for the one with the error
			}
			after = max(soon, later)
			retry = min(2*retry, retryMax)
		default:
			retry = retryMin
		}
		pause(ctx, wake, after)
	}
	return nil
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

func jittered(d time.Duration) time.Duration { return d - rand.N(d/2+1) }
