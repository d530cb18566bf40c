// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

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
	tracker *lkg.Tracker
	checker *checker[T]

	// turn is held by whoever records a start or a health report, so that no report of one run is credited to the next.
	turn semaphore
	// reporting is held by whoever talks to the Reporter.
	reporting semaphore
	// restarting is held by whoever compares what runs with what should run and acts on it.
	restarting semaphore

	notes             *notes
	running, watching atomic.Bool // by Run or Reconcile, by Run or Watch
	schedule          schedule    // of the call that has set running

	mu       sync.Mutex // guards what follows; never held across I/O
	live     live[T]
	reported *Status
	looked   int // counts looks at the source
}

// live is what this process knows beyond the records.
type live[T any] struct {
	epoch     int // counts Bootstraps; 0: none yet
	active    Active[T]
	book      *book[T]
	startedAt time.Time // by Options.Now, for people
	since     time.Time // monotonic: up to here health was reported
	up        time.Time // monotonic: when the last start was
	acked     bool      // the config was acknowledged in this run
	wait      ackWait
	sick      sickness
	recorded  bool  // the last start is on record
	storage   error // the last trouble with the store, until a write lands
	extra     error // the last trouble with the payloads that are kept
	sync      syncState
	run       runState
	asked     asked
}

// syncState is the result of the last pass over the source.
type syncState struct {
	err        error         // why the wanted config is unclear; nil when it is clear
	found      bool          // this process has found out what the source names, or has failed to
	silent     bool          // the source itself gave no answer
	refused    *lkg.BadEntry // the wanted config is listed as bad and is not the assigned one
	generation int64
	pending    *Change // waits for its turn under Options.FollowJitter; never changed in place
}

// asked is the last restart that was asked for in this run.
type asked struct {
	to lkg.Ref
	at time.Time
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
	s := &Syncer[T]{
		o: o, checker: newChecker(&o), turn: newSemaphore(), reporting: newSemaphore(), restarting: newSemaphore(),
		notes: newNotes(),
	}
	s.schedule = newSchedule(s.retryBackoff())
	s.tracker, err = lkg.NewTracker(ctx, o.Store, lkg.Options{
		Version: o.Version, BootID: o.BootID, Now: o.Now, Policy: o.Policy, Keep: s.checker.objects.keepGood, Binary: o.Binary,
	})
	if err != nil {
		return nil, fmt.Errorf("configsync: reading the records: %w", err)
	}
	s.o.Probes = withBaselines(s.o.Probes, s.o.Store, s.tracker)
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
	if err := s.turn.acquire(ctx); err != nil {
		return none, err
	}
	defer s.turn.release()
	startErr := s.tracker.Start(ctx, exit)
	if startErr != nil && !isRecordError(startErr) {
		return none, startErr
	}
	b, st := newBook(s.checker), s.tracker.State()
	b.judgeAgain(ctx, &st)
	v, err := s.tracker.Decide(ctx, b.limits, func(r lkg.Ref) lkg.Check { return b.judged(ctx, &st, r) })
	if err != nil && !isRecordError(err) {
		return none, err
	}
	a := b.active(v)
	s.began(a, b, startErr == nil, errors.Join(startErr, err), exit)
	return a, nil
}

// began takes note of a start, under s.mu.
func (s *Syncer[T]) began(a Active[T], b *book[T], recorded bool, storage error, exit lkg.Exit) {
	s.mu.Lock()
	s.live.epoch++
	s.live.active, s.live.book = a, b
	s.live.startedAt, s.live.since = s.o.Now(), time.Now()
	s.live.up = s.live.since
	s.live.acked, s.live.wait, s.live.sick = false, ackWait{}, sickness{}
	s.live.recorded, s.live.storage = recorded, storage
	s.live.run, s.live.asked = runState{ended: exit}, asked{}
	s.mu.Unlock()
	s.notes.compareOwn()
	s.notes.announce()
}

// isMade refuses a nil Syncer and the zero value, which have no records.
func (s *Syncer[T]) isMade() error {
	if s == nil || s.tracker == nil {
		return errNotMade
	}
	return nil
}

// snapshot copies what this process knows.
func (s *Syncer[T]) snapshot() live[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
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
	defer s.running.Store(false)
	if s.watching.Load() {
		return ErrRunning
	}
	s.schedule = newSchedule(s.retryBackoff())
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
	return s.settleIfRunning(ctx)
}

// Reject lists a config as bad on the word of somebody outside, such as a node problem detector. A node that runs it
// goes back to the last known good config at once. r is usually Status().Active; the local config can't be rejected.
func (s *Syncer[T]) Reject(ctx context.Context, r lkg.Ref, reason string) error {
	if err := s.isMade(); err != nil {
		return err
	}
	if err := s.tracker.Reject(ctx, r, reason); err != nil {
		return err
	}
	s.notes.announce()
	return s.settleIfRunning(ctx)
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
	return s.settleIfRunning(ctx)
}

// Stopping records that the configured thing is about to be stopped on purpose, so that its next start counts
// against nobody.
func (s *Syncer[T]) Stopping(ctx context.Context) error {
	if err := s.isMade(); err != nil {
		return err
	}
	if err := s.tracker.PlanRestart(ctx, lkg.CausePlanned); err != nil {
		return err
	}
	return s.endWait(ctx)
}

// settleIfRunning acts at once where something runs; otherwise the next start does.
func (s *Syncer[T]) settleIfRunning(ctx context.Context) error {
	if s.snapshot().epoch == 0 || s.o.Restarter == nil {
		return nil
	}
	return s.settle(ctx, false)
}

// withChild adds a Restarter that knows whether what it restarts is alive to the probes, so that no time is credited to
// what is dead.
func withChild(probes []Probe, r Restarter) []Probe {
	p, ok := r.(Probe)
	if !ok {
		return probes
	}
	for _, other := range probes {
		if other.Name() == p.Name() {
			return probes
		}
	}
	return append([]Probe{p}, probes...)
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
