// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belayproject/belay/internal/backoff"
)

// A sourceWatcher has a source, and the object that is followed, watched without a break.
type sourceWatcher struct {
	notes              *notes
	retryMin, retryMax time.Duration
}

// keepWatching calls watch again and again, backing off while there is none. Each new watch is followed by a pass, for
// what was missed in between.
func (w sourceWatcher) keepWatching(ctx context.Context, watch func(context.Context, func()) error) error {
	b := retryBackoff(w.retryMin, w.retryMax)
	for ctx.Err() == nil {
		began := time.Now()
		_ = watch(ctx, w.notes.stirSource) // what is wrong shows when the source is read
		if time.Since(began) > w.retryMax {
			b.Reset()
		}
		w.notes.stirSource()
		if !pause(ctx, jitterWait(b.Next()), nil) {
			return nil
		}
	}
	return nil
}

// watchFollowed watches the object that is followed, until another one is.
func (w sourceWatcher) watchFollowed(ctx context.Context, f Fetcher) error {
	fetcher, ok := f.(FollowFetcher)
	if !ok {
		return nil
	}
	for more := true; more; {
		spec := w.notes.toFollow()
		g := newGroup(ctx)
		if spec != (Spec{}) {
			g.run(func(ctx context.Context) error {
				return w.keepWatching(ctx, func(ctx context.Context, changed func()) error {
					return fetcher.WatchObject(ctx, spec, changed)
				})
			})
		}
		more = pause(ctx, 0, w.notes.object)
		g.cancel(nil)
		_ = g.wait()
	}
	return nil
}

// notes wake the passes, and the caller of Reconcile.
type notes struct {
	sync, report, caller, object chan struct{}
	stirred, own                 atomic.Bool // why the next look at the source was asked for

	mu       sync.Mutex
	followed Spec // zero: none; guarded by mu
}

func newNotes() *notes {
	one := func() chan struct{} { return make(chan struct{}, 1) }
	return &notes{sync: one(), report: one(), caller: one(), object: one()}
}

// stirSource asks for a look at the source because the world may have changed: what was reported is compared with it
// again.
func (n *notes) stirSource() {
	n.stirred.Store(true)
	wake(n.sync)
	wake(n.caller)
}

// takeSync takes the note that the source is to be looked at, if there is one, and makes one if the world may have
// changed.
func (n *notes) takeSync(changed bool) bool {
	if changed {
		n.stirred.Store(true)
	}
	select {
	case <-n.sync:
		return true
	default:
		return changed
	}
}

// compareOwn asks for a look at the source because this process has changed, and nothing else has.
func (n *notes) compareOwn() {
	n.own.Store(true)
	wake(n.sync)
}

// announce asks for a report of what another call has changed.
func (n *notes) announce() {
	wake(n.report)
	wake(n.caller)
}

// isStale says whether what was reported is to be compared with the world.
func (n *notes) isStale() bool {
	own, stirred := n.own.Swap(false), n.stirred.Swap(false)
	return stirred || !own
}

// follow has the object of a spec watched that asks for it, and no other any more.
func (n *notes) follow(spec Spec) {
	if spec.Generation = 0; spec.Policy != Follow {
		spec = Spec{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.followed != spec {
		n.followed = spec
		wake(n.object)
	}
}

func (n *notes) toFollow() Spec {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.followed
}

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

// jitterWait takes up to a fifth from d, so that a fleet spreads out.
func jitterWait(d time.Duration) time.Duration { return backoff.Jitter(d, 0.8, 1, nil) }

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
