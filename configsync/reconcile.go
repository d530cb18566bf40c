// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/lkg"
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
	defer s.calls.running.Store(false)
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
	if !s.calls.running.CompareAndSwap(false, true) {
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
	needed := s.live.snapshot().needsHealth(s.tracker.State(), s.probes.probes)
	after = soonerOf(after, due.untilProbe(needed, s.o.ProbeInterval))
	if len(s.notes.sync) > 0 { // a start or another call came in between
		after = soonerOf(after, s.o.RetryMin)
	}
	return after, nil
}

// syncIfDue reads the source, or says when that is due. Without a Watch, each call may be for a change of the source.
func syncIfDue[T any](ctx context.Context, s *Syncer[T]) (time.Duration, error) {
	isDue := s.notes.takeSync(!s.calls.watching.Load())
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
	if !s.calls.watching.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer s.calls.watching.Store(false)
	g := newGroup(ctx)
	if s.o.Source != nil {
		w := sourceWatcher{notes: s.notes, retryMin: s.o.RetryMin, retryMax: s.o.RetryMax}
		g.run(func(ctx context.Context) error { return w.keepWatching(ctx, s.o.Source.Watch) })
		g.run(func(ctx context.Context) error { return w.watchFollowed(ctx, s.o.Fetcher) })
	}
	g.run(func(ctx context.Context) error {
		for pause(ctx, 0, s.notes.caller) {
			changed()
		}
		return nil
	})
	return g.wait()
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
		again = jitterWait(s.schedule.sync.Next())
	default:
		s.schedule.sync.Reset()
		if again <= 0 { // a watch may be dead and not say so, and a restart that is under way may never come
			again = jitterWait(s.o.Resync)
			if !s.live.snapshot().asked.at.IsZero() {
				again = s.o.RetryMax
			}
		}
	}
	s.schedule.syncAt = time.Now().Add(again)
	return again, nil
}

// syncSource reads the source once and does what follows from it. A positive duration asks for another pass then.
func (s *Syncer[T]) syncSource(ctx context.Context) (again time.Duration, err error) {
	if s.notes.isStale() {
		s.reports.forgetLanded()
	}
	spec, err := askSource(ctx, s.o.Source, s.o.CallTimeout)
	var refused *lkg.BadEntry
	switch {
	case err != nil:
	case spec == nil:
		s.notes.follow(Spec{})
		err = s.adopter.resetToLocal(ctx)
	default:
		s.notes.follow(*spec)
		again, refused, err = s.adopter.takeSpec(ctx, *spec, &s.schedule.delay)
	}
	if ctx.Err() != nil {
		return 0, nil
	}
	s.live.update(func(l *live[T]) {
		l.sync.pending = s.schedule.delay.pendingEdit(l.active.Ref, again, s.o.FollowJitter)
	})
	var ask *restartError
	if errors.As(err, &ask) {
		s.adopter.noteOutcome(ctx, spec, refused, nil)
		wake(s.notes.report)
		return 0, err
	}
	s.adopter.noteOutcome(ctx, spec, refused, err)
	wake(s.notes.report)
	if err == nil {
		st := s.tracker.State()
		err = s.adopter.checker.objects.pruneUnnamed(ctx, &st)
		s.live.update(func(l *live[T]) { l.extra = err })
		if err != nil {
			wake(s.notes.report)
		}
	}
	return again, err
}

// askSource asks what is wanted, with a deadline.
func askSource(ctx context.Context, source Source, timeout time.Duration) (*Spec, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	spec, err := source.Desired(ctx)
	if err != nil || spec == nil {
		return nil, err
	}
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	return spec, nil
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
		again = jitterWait(s.o.Resync)
	}
	if err := s.reports.sendStatus(ctx); err != nil {
		return jitterWait(s.schedule.report.Next()), nil
	}
	s.schedule.report.Reset()
	return again, nil
}
