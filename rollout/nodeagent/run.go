// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/option"
)

// Run takes the steps of [Agent.Reconcile] whenever the shadow may have changed, and when it asks for it, until ctx
// ends; then it returns nil. Errors are
// logged, and tried again after a time that grows. Call it once.
func (a *Agent) Run(ctx context.Context) error {
	if a.turn == nil {
		return option.NotMade("rollout/nodeagent.Agent.Run", "rollout/nodeagent.New")
	}
	retry := backoff.Backoff{First: a.o.RetryMin, Most: a.o.RetryMax}
	for ctx.Err() == nil {
		after, err := a.takeSteps(ctx, "")
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			level := 0
			if errors.Is(err, context.DeadlineExceeded) {
				level = 1 // a server that is away is the controller's news
			}
			delay := retry.Next()
			klog.FromContext(ctx).V(level).Info("Rollout pass failed", "err", err, "again", delay)
			after = jittered(delay)
		default:
			retry.Reset()
			if after == 0 || after > a.o.Resync {
				after = jittered(a.o.Resync)
			}
		}
		a.pause(ctx, after)
	}
	return nil
}

// pause waits for that time, or for a change of the shadow.
func (a *Agent) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-a.o.Changed:
	case <-t.C:
	}
}

// jittered spreads what agents of a fleet do at the same time over half of the time.
func jittered(d time.Duration) time.Duration { return backoff.Jitter(d, 0.5, 1, nil) }
