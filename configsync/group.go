// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"sync"
	"time"

	"github.com/belayproject/belay/internal/backoff"
)

// semaphore is a lock that gives up with a context. It may be held across disk I/O, never across a call to a server.
type semaphore chan struct{}

func newSemaphore() semaphore { return make(semaphore, 1) }

func (s semaphore) acquire(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s semaphore) release() { <-s }

// wake leaves at most one note; a reader that is busy finds it later.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// group runs loops until one fails or the parent ends, and waits for all of them.
type group struct {
	parent context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

func newGroup(parent context.Context) *group {
	ctx, cancel := context.WithCancelCause(parent)
	return &group{parent: parent, ctx: ctx, cancel: cancel}
}

// run starts a loop. Its error, unless the group is ending already, ends the group.
func (g *group) run(loop func(context.Context) error) {
	g.wg.Go(func() {
		if err := loop(g.ctx); err != nil {
			g.cancel(err)
		}
	})
}

// wait returns the first error of a loop, or nil once the parent has ended.
func (g *group) wait() error {
	<-g.ctx.Done()
	g.wg.Wait()
	if g.parent.Err() != nil {
		return nil
	}
	return context.Cause(g.ctx)
}

// retryBackoff returns the backoff of a loop.
func retryBackoff(first, most time.Duration) backoff.Backoff {
	return backoff.Backoff{First: first, Most: most}
}

// jittered takes up to a fifth from d, so that a fleet spreads out.
func jittered(d time.Duration) time.Duration { return backoff.Jitter(d, 0.8, 1, nil) }

// pause waits for d, a wake-up or the end of ctx; d of 0 waits for ever. It reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer:
	}
	return ctx.Err() == nil
}
