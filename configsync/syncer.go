// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/belayproject/belay/lkg"
)

var (
	// errNotMade means that a Syncer was not made by [New] or [NewSteered].
	errNotMade = errors.New("configsync: the Syncer was not made by New")
	// ErrRunning means that [Syncer.Run], [Syncer.Reconcile] or [Syncer.Watch] was called while another call of the same
	// Syncer does that work.
	ErrRunning = errors.New("configsync: the Syncer is running already")
)

// ErrNotStarted means that a call that needs a chosen config came before [Syncer.Bootstrap] had chosen one.
var ErrNotStarted = errors.New("configsync: Bootstrap has not chosen a config yet")

// A Syncer brings one node to the config that a source names. Make it with [New].
type Syncer[T any] struct {
	o       Options[T]
	tracker *lkg.Tracker  // what is on record
	live    *liveState[T] // what this process knows beyond the records

	adopter  *adopter[T]        // gets, judges and assigns what the source names
	restarts *restartControl[T] // has it used
	probes   prober             // say whether it is well
	acks     ackKeeper[T]
	reports  *reportSender

	notes    *notes // wake the passes
	calls    callState
	schedule schedule // of the call that has set calls.running
}

// A callState says which calls that may not go on twice at a time go on.
type callState struct {
	running  atomic.Bool // Run or Reconcile
	watching atomic.Bool // Run or Watch
}

// New returns a Syncer over the state in o.Store. It reads the records and writes nothing. The error names the option
// that is missing or wrong.
func New[T any](ctx context.Context, o Options[T]) (*Syncer[T], error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := o.Bounds.Validate(); err != nil {
		return nil, fmt.Errorf("configsync: Options.Bounds: %w", err)
	}
	if o.Store == nil {
		o.Store = nowhere{}
	}
	o.Probes = withChild(o.Probes, o.Restarter)
	check := newChecker(&o)
	tracker, err := lkg.NewTracker(ctx, o.Store, lkg.Options{
		Version: o.Version, BootID: o.BootID, Now: o.Now, Policy: o.Policy, Keep: check.objects.keepGood, Binary: o.Binary,
	})
	if err != nil {
		return nil, fmt.Errorf("configsync: reading the records: %w", err)
	}
	s := &Syncer[T]{
		o: o, tracker: tracker, live: newLiveState[T](), notes: newNotes(),
		schedule: newSchedule(retryBackoff(o.RetryMin, o.RetryMax)),
	}
	s.probes = newProber(withBaselines(o.Probes, o.Store, tracker), o.Restarter, o.ProbeTimeout)
	s.acks = ackKeeper[T]{ack: o.Ack, store: o.Store, bootID: o.BootID, timeout: o.ProbeTimeout, live: s.live}
	s.reports = &reportSender{to: o.Reporter, timeout: o.CallTimeout, status: s.status, turn: newSemaphore()}
	s.restarts = &restartControl[T]{
		restarter: o.Restarter, policy: o.Policy, retryMax: o.RetryMax, probes: s.probes.probes,
		before: o.BeforeRestart, status: s.status, tracker: tracker, live: s.live, turn: newSemaphore(),
	}
	s.adopter = &adopter[T]{
		fetcher: o.Fetcher, timeout: o.CallTimeout, jitter: o.FollowJitter,
		checker: check, tracker: tracker, live: s.live, restarts: s.restarts,
	}
	return s, nil
}

// Bootstrap records a start of what is configured and returns the config that it must use. It reads and writes the
// Store only; it makes no network call. exit tells how the previous run ended, as far as the caller knows.
//
// The error is a [*lkg.BaselineError] when the local config is not good: refuse to start. A Store that can't be written
// is no error: then a config on trial is not used, and the status says so. Bootstrap may be called again for each start
// of a child.
func (s *Syncer[T]) Bootstrap(ctx context.Context, exit lkg.Exit) (Active[T], error) {
	var none Active[T]
	if err := s.isMade(); err != nil {
		return none, err
	}
	if err := s.live.turn.acquire(ctx); err != nil {
		return none, err
	}
	defer s.live.turn.release()
	startErr := s.tracker.Start(ctx, exit)
	if startErr != nil && !isRecordError(startErr) {
		return none, startErr
	}
	b, st := newBook(s.adopter.checker), s.tracker.State()
	b.judgeAgain(ctx, &st)
	v, err := s.tracker.Decide(ctx, b.limits, func(r lkg.Ref) lkg.Check { return b.judgeConfig(ctx, &st, r) })
	if err != nil && !isRecordError(err) {
		return none, err
	}
	a := b.active(v)
	startedAt := s.o.Now()
	s.live.update(func(l *live[T]) {
		l.beginRun(a, b, startedAt, exit)
		l.recorded, l.storage = startErr == nil, errors.Join(startErr, err)
	})
	s.notes.compareOwn()
	s.notes.announce()
	return a, nil
}

// isMade refuses a nil Syncer and the zero value, which have no records.
func (s *Syncer[T]) isMade() error {
	if s == nil || s.tracker == nil {
		return errNotMade
	}
	return nil
}

// Run keeps the node at the config that the Source names until ctx ends, and then returns nil. It watches, adopts,
// probes, promotes, rolls back and reports: it repeats the passes of [Syncer.Reconcile], each in a goroutine of its
// own, so that no probe waits for a server that hangs. An error of the Restarter ends it and is returned as it is
// wrapped: a Restarter that wants the process to exit says so that way. Call [Syncer.Bootstrap] first. A second Run
// while the first one goes on is [ErrRunning].
func (s *Syncer[T]) Run(ctx context.Context) error {
	if err := s.isMade(); err != nil {
		return err
	}
	if err := s.acquireRun(); err != nil {
		return err
	}
	defer s.calls.running.Store(false)
	if s.calls.watching.Load() {
		return ErrRunning
	}
	s.schedule = newSchedule(retryBackoff(s.o.RetryMin, s.o.RetryMax))
	g := newGroup(ctx)
	g.run(func(ctx context.Context) error { return s.Watch(ctx, func() {}) })
	if s.o.Source != nil {
		g.run(repeatPass(s.syncPass, s.notes.sync))
	}
	g.run(repeatPass(s.healthPass, nil))
	g.run(repeatPass(s.reportPass, s.notes.report))
	return g.wait()
}

// Forget removes what is held against every version of the object with that UID, so that it is tried again, on a new
// trial. The error is fs.ErrNotExist when nothing is held against it.
func (s *Syncer[T]) Forget(ctx context.Context, uid string) error {
	if err := s.isMade(); err != nil {
		return err
	}
	if err := s.tracker.Forget(ctx, uid); err != nil {
		return err
	}
	wake(s.notes.sync)
	s.notes.announce()
	return s.restarts.restartIfRunning(ctx)
}

// Reject lists a config as bad on the word of another program, such as a node problem detector. A node that runs it
// goes back to the last known good config at once. r is usually Status().Active; the local config can't be rejected.
func (s *Syncer[T]) Reject(ctx context.Context, r lkg.Ref, reason string) error {
	if err := s.isMade(); err != nil {
		return err
	}
	if err := s.tracker.Reject(ctx, r, reason); err != nil {
		return err
	}
	s.notes.announce()
	return s.restarts.restartIfRunning(ctx)
}

// UseLocal leaves the assigned config for the local one, on a person's word. What was assigned, and the last known good
// config where it is another, are listed as bad for the given reason, so that they are not taken up again until they
// are forgotten; a newer config that the Source names is.
func (s *Syncer[T]) UseLocal(ctx context.Context, reason string) error {
	if err := s.isMade(); err != nil {
		return err
	}
	st := s.tracker.State()
	for _, r := range []lkg.Ref{st.Current.Ref, st.LastKnownGood} {
		if r.IsLocal() || st.BadEntry(r) != nil {
			continue
		}
		if err := s.tracker.Reject(ctx, r, reason); err != nil {
			return err
		}
	}
	if err := s.tracker.Reset(ctx); err != nil {
		return err
	}
	s.notes.announce()
	return s.restarts.restartIfRunning(ctx)
}

// Stopping records that the configured thing is about to be stopped on purpose, so that its next start counts
// against no config.
func (s *Syncer[T]) Stopping(ctx context.Context) error {
	if err := s.isMade(); err != nil {
		return err
	}
	if err := s.tracker.PlanRestart(ctx, lkg.CausePlanned); err != nil {
		return err
	}
	return s.acks.endWait(ctx, s.live.snapshot(), s.tracker.State())
}

func isRecordError(err error) bool {
	var be *lkg.BaselineError
	return errors.Is(err, lkg.ErrRecord) && !errors.As(err, &be)
}

// nowhere is the store of a Syncer without one: it keeps nothing.
type nowhere struct{}

func (nowhere) Get(context.Context, string) ([]byte, error)    { return nil, fs.ErrNotExist }
func (nowhere) Put(context.Context, string, []byte) error      { return nil }
func (nowhere) Delete(context.Context, string) error           { return nil }
func (nowhere) List(context.Context, string) ([]string, error) { return nil, nil }
