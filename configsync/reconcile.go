// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/option"
)

// Reconcile is one bounded pass: it probes what runs if that is due, reads the Source, adopts, promotes or rolls back,
// and reports. [Syncer.Run] does the same until its context ends. Reconcile is for those who schedule by themselves, in
// a work queue or a controller-runtime Reconciler. The key is [Options].Node; another key is an OptionError.
//
// requeueAfter is when to call it again at the latest; zero means that only a change can matter. The clock of a trial
// is monotonic and runs between the calls. A call that comes late credits a minute at most, so a trial takes longer
// then, and never less.
//
// The caller calls [Syncer.Bootstrap] before, and runs [Syncer.Watch], which says when to call it before its time.
// Without a Watch, each call reads the Source and has the Reporter compare, and the caller calls it after each change
// of the Source and after each other call of the Syncer; edits of an object that is followed are found after
// Options.Resync at the latest.
//
// An error of the Source, the Fetcher, the Store or the Reporter is no error of Reconcile: it is in [Syncer.Status] and
// in requeueAfter, with a back-off of its own, as a work queue that backs off would leave what runs unprobed. An error
// of the Restarter is returned as it is wrapped. A Restarter that wants the process to exit says so that way: end the
// process then, with restart.Code of the error, say. Before Bootstrap the error is [ErrNotStarted]; while a Run or
// another Reconcile goes on, it is [ErrRunning]; if ctx ends, it wraps the cause.
func (s *Syncer[T]) Reconcile(ctx context.Context, node string) (requeueAfter time.Duration, err error) {
	if err := s.isMade(); err != nil {
		return 0, err
	}
	if s.o.Node != "" && node != s.o.Node {
		check := option.For("configsync.Syncer.Reconcile", nil)
		check.Wrong("the key must be %q (Options.Node), got %q", s.o.Node, node)
		return 0, check.Err()
	}
	if err := s.acquireRun(); err != nil {
		return 0, err
	}
	defer s.running.Store(false)
	if requeueAfter, err = s.reconcileOnce(ctx); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, fmt.Errorf("configsync: reconciling node %q: %w", node, context.Cause(ctx))
	}
	return requeueAfter, nil
}

// acquireRun is for a Run or a Reconcile, which clears running at its end.
func (s *Syncer[T]) acquireRun() error {
	if s.live.snapshot().epoch == 0 {
		return ErrNotStarted
	}
	if !s.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	return nil
}

// reconcileOnce makes the passes that are due, one after the other.
func (s *Syncer[T]) reconcileOnce(ctx context.Context) (after time.Duration, err error) {
	due := &s.schedule
	var passes []pass
	if !due.probeAt.IsZero() && time.Until(due.probeAt) <= 0 {
		passes = append(passes, s.healthPass)
	}
	passes = append(passes, func(ctx context.Context) (time.Duration, error) { return syncIfDue(ctx, s) }, s.reportPass)
	for _, p := range passes {
		if ctx.Err() != nil {
			return 0, nil
		}
		again, err := p(ctx)
		if err != nil {
			return 0, err
		}
		after = soonerOf(after, again)
	}
	after = soonerOf(after, due.untilProbe(s.live.snapshot().needsHealth(s.tracker.State(), s.probes.probes), s.o.ProbeInterval))
	if len(s.notes.sync) > 0 { // a start or another call came in between
		after = soonerOf(after, s.o.RetryMin)
	}
	return after, nil
}

// syncIfDue reads the source, or says when that is due. Without a Watch, each call may be for a change of the source.
func syncIfDue[T any](ctx context.Context, s *Syncer[T]) (time.Duration, error) {
	isDue := s.notes.takeSync(!s.watching.Load())
	if s.o.Source == nil {
		return 0, nil
	}
	if wait := time.Until(s.schedule.syncAt); !isDue && wait > 0 {
		return wait, nil
	}
	return s.syncPass(ctx)
}

// soonerOf returns the shorter of two waits, of which 0 is none.
func soonerOf(a, b time.Duration) time.Duration {
	if b > 0 && (a == 0 || b < a) {
		return b
	}
	return a
}

// Watch calls changed, which does not block, when [Syncer.Reconcile] has something to do before its time: the Source or
// an object that is followed has changed, the configured thing was started, or another call has decided something. It
// returns nil when ctx ends. [Syncer.Run] has a Watch of its own: a second one is [ErrRunning].
func (s *Syncer[T]) Watch(ctx context.Context, changed func()) error {
	if err := s.isMade(); err != nil {
		return err
	}
	err := option.CheckRequired("configsync.Syncer.Watch", "changed", changed, "it queues the key of Reconcile")
	if err != nil {
		return err
	}
	if !s.watching.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer s.watching.Store(false)
	g := newGroup(ctx)
	if s.o.Source != nil {
		g.run(func(ctx context.Context) error { return s.keepWatching(ctx, s.o.Source.Watch) })
		g.run(s.watchFollowed)
	}
	g.run(func(ctx context.Context) error {
		for pause(ctx, 0, s.notes.caller) {
			changed()
		}
		return nil
	})
	return g.wait()
}

// keepWatching calls watch again and again, backing off while there is none. Each new watch is followed by a pass, for
// what was missed in between.
func (s *Syncer[T]) keepWatching(ctx context.Context, watch func(context.Context, func()) error) error {
	b := s.retryBackoff()
	for ctx.Err() == nil {
		began := time.Now()
		_ = watch(ctx, s.notes.stirSource) // what is wrong shows when the source is read
		if time.Since(began) > s.o.RetryMax {
			b.Reset()
		}
		s.notes.stirSource()
		if !pause(ctx, jittered(b.Next()), nil) {
			return nil
		}
	}
	return nil
}

// watchFollowed watches the object that is followed, until another one is.
func (s *Syncer[T]) watchFollowed(ctx context.Context) error {
	fetcher, ok := s.o.Fetcher.(FollowFetcher)
	if !ok {
		return nil
	}
	for more := true; more; {
		spec := s.notes.toFollow()
		g := newGroup(ctx)
		if spec != (Spec{}) {
			g.run(func(ctx context.Context) error {
				return s.keepWatching(ctx, func(ctx context.Context, changed func()) error {
					return fetcher.WatchObject(ctx, spec, changed)
				})
			})
		}
		more = pause(ctx, 0, s.notes.object)
		g.cancel(nil)
		_ = g.wait()
	}
	return nil
}

// A pass does what is due of one kind, and says when it wants to be called again.
type pass func(ctx context.Context) (again time.Duration, err error)

// repeatPass calls a pass when it has asked for it and after each wake-up.
func repeatPass(p pass, wake <-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			again, err := p(ctx)
			if err != nil {
				return err
			}
			if !pause(ctx, again, wake) {
				return nil
			}
		}
	}
}

// A schedule is when the passes are due. Each field belongs to one of them.
type schedule struct {
	syncAt  time.Time // monotonic
	sync    backoff.Backoff
	delay   followDelay
	probeAt time.Time // monotonic; zero: no round is due
	report  backoff.Backoff
	told    bool // a status was sent before
}

func newSchedule(retry backoff.Backoff) schedule { return schedule{sync: retry, report: retry} }

// untilProbe is when the next round of probes is due, 0 if nothing depends on one.
func (d *schedule) untilProbe(needed bool, interval time.Duration) time.Duration {
	switch {
	case !needed:
		d.probeAt = time.Time{}
		return 0
	case d.probeAt.IsZero():
		d.probeAt = time.Now().Add(interval)
	}
	return max(time.Until(d.probeAt), 1)
}

// syncPass reads the source, and asks for another pass after a while when something was in the way.
func (s *Syncer[T]) syncPass(ctx context.Context) (time.Duration, error) {
	again, err := s.syncSource(ctx)
	var ask *restartError
	switch {
	case errors.As(err, &ask):
		return 0, ask.err
	case ctx.Err() != nil: // what was not looked at is looked at by the next pass
		s.notes.stirSource()
		s.schedule.syncAt = time.Time{}
		return 0, nil
	case err != nil:
		again = jittered(s.schedule.sync.Next())
	default:
		s.schedule.sync.Reset()
		if again <= 0 { // a watch may be dead and not say so, and a restart that is under way may never come
			again = jittered(s.o.Resync)
			if !s.live.snapshot().asked.at.IsZero() {
				again = s.o.RetryMax
			}
		}
	}
	s.schedule.syncAt = time.Now().Add(again)
	return again, nil
}

// healthPass probes what runs, and promotes, leaves or rejects it, each ProbeInterval, for as long as
// it is in use. It needs no server.
func (s *Syncer[T]) healthPass(ctx context.Context) (time.Duration, error) {
	if !s.schedule.probeAt.IsZero() {
		err := s.checkHealth(ctx)
		var ask *restartError
		if errors.As(err, &ask) {
			return 0, ask.err
		}
		if ctx.Err() != nil { // the end of ctx says nothing of the store
			return 0, nil
		}
		s.noteStorage(err)
		s.recoverStorage(ctx)
	}
	s.schedule.probeAt = time.Now().Add(s.o.ProbeInterval)
	return s.o.ProbeInterval, nil
}

// reportPass reports a new status, backing off until it lands. Where no look at a source does it, it also reports each
// Resync although nothing is new.
func (s *Syncer[T]) reportPass(ctx context.Context) (again time.Duration, err error) {
	if s.o.Reporter == nil {
		return 0, nil
	}
	if wait := s.live.snapshot().asked.holdReport(); wait > 0 {
		return wait, nil
	}
	if s.o.Source == nil {
		if s.schedule.told {
			s.reports.forgetLanded()
		}
		s.schedule.told = true
		again = jittered(s.o.Resync)
	}
	if err := s.reports.sendStatus(ctx); err != nil {
		return jittered(s.schedule.report.Next()), nil
	}
	s.schedule.report.Reset()
	return again, nil
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
