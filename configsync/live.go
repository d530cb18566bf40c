// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/belayproject/belay/lkg"
)

// A liveState holds what this process knows beyond the records, for all the passes. Its lock is never held across I/O.
type liveState[T any] struct {
	// turn is held while a start, a health report or a planned restart is put on record, so that no record of one run
	// is taken for one of the next.
	turn semaphore

	mu  sync.Mutex
	now live[T]
}

func newLiveState[T any]() *liveState[T] { return &liveState[T]{turn: newSemaphore()} }

// snapshot copies what this process knows.
func (s *liveState[T]) snapshot() live[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// update changes what this process knows.
func (s *liveState[T]) update(change func(*live[T])) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.now)
}

// updateRun changes what this process knows of the run of that epoch. It changes nothing, and returns false, once
// another run has begun.
func (s *liveState[T]) updateRun(epoch int, change func(*live[T])) (isPresent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.epoch != epoch {
		return false
	}
	change(&s.now)
	return true
}

// live is what this process knows beyond the records. It is copied, and what it points to is not changed.
type live[T any] struct {
	epoch     int // counts Bootstraps; 0: none yet
	active    Active[T]
	book      *book[T]
	startedAt time.Time // by Options.Now, for people
	up        time.Time // monotonic: when the last start was
	run       runState
	ack       ackState
	asked     asked
	recorded  bool  // the last start is on record
	storage   error // the last trouble with the store, until a write lands
	extra     error // the last trouble with the payloads that are kept
	sync      syncState
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

// beginRun replaces what was known of the run before, which ended with exit.
func (l *live[T]) beginRun(a Active[T], b *book[T], startedAt time.Time, exit lkg.Exit) {
	l.epoch++
	l.active, l.book = a, b
	l.startedAt, l.up = startedAt, time.Now()
	l.run, l.ack, l.asked = runState{ended: exit, creditedTo: l.up}, ackState{}, asked{}
}

// nextVerdict is what a planned restart would lead to, by the same function that decides at a start. Trouble in finding
// the wanted config is left out: it never changes a live process. isRecorded says that the restart's own record can be
// relied upon.
func (l live[T]) nextVerdict(ctx context.Context, st lkg.State, p lkg.Policy, isRecorded bool) lkg.Verdict {
	st.Desired = lkg.Outcome{Kind: lkg.DesiredCorrect}
	return lkg.Decide(lkg.Input{State: st, Recorded: isRecorded, Limits: l.book.limits, Policy: p},
		func(r lkg.Ref) lkg.Check { return l.book.judgeConfig(ctx, &st, r) })
}

// needsHealth reports whether something depends on health reports: a probe, a config that is on trial, under suspicion
// or in place of another one, trouble with the store, or ends of runs that a healthy run would forgive.
func (l live[T]) needsHealth(st lkg.State, probes []Probe) bool {
	if len(probes) > 0 || l.run.needsProof() || l.storage != nil || !l.recorded ||
		l.active.Verdict.Role != lkg.RoleCurrent {
		return true
	}
	return st.OnTrial() || st.Case != nil || slices.ContainsFunc(st.Starts, func(start lkg.Start) bool {
		return !start.Settled && start.Good == st.GoodID && start.After.Role != "" && start.Cause == lkg.CauseCrash
	})
}

// awaitsAck reports whether what runs is on trial and waits for an acknowledgement, where one is asked for.
func (l live[T]) awaitsAck(st lkg.State) bool {
	return !l.ack.given && st.OnTrial() && l.active.Verdict.Role == lkg.RoleCurrent && l.active.Ref.Same(st.Current.Ref)
}

// view is what of the live state a status shows.
func (l live[T]) view() view {
	return view{verdict: l.active.Verdict, limits: l.book.limits(l.active.Ref), startedAt: l.startedAt,
		sync: l.sync, storage: errors.Join(l.storage, l.extra), run: l.run, age: time.Since(l.up),
		sick: l.run.sick.probe, sickFor: time.Since(l.run.sick.since)}
}

// runState is what is known of the health of the present run.
type runState struct {
	creditedTo time.Time // monotonic: up to here health was reported
	failing    []string  // the probes that fail now, with their errors
	sick       sickness
	healthy    time.Time // monotonic: since when all required probes pass without a break; zero: they do not
	ended      lkg.Exit  // how the run before this one ended
}

// longestProof bounds how long a run after a bad end must be healthy before its condition says so:
// a child that crashes every few seconds is not healthy in between.
const longestProof = 30 * time.Second

// observeProbes takes note of a round of probes.
func (r *runState) observeProbes(h lkg.Health, now time.Time) {
	r.sick = r.sick.after(h, now)
	switch {
	case !isHealthy(h):
		r.healthy = time.Time{}
	case r.healthy.IsZero():
		r.healthy = now
	}
}

// isProven reports whether the run has been healthy for long enough to outweigh a bad end of the run before.
func (r runState) isProven(l lkg.Limits) bool {
	proof := longestProof
	if l.MinHealthyRun > 0 {
		proof = min(proof, l.MinHealthyRun)
	}
	return !r.healthy.IsZero() && time.Since(r.healthy) >= proof
}

// needsProof reports whether the run before ended badly, and this one has only just been healthy for
// long enough, if at all.
func (r runState) needsProof() bool {
	return isBadEnd(r.ended) && (r.healthy.IsZero() || time.Since(r.healthy) < 2*longestProof)
}

// isBadEnd reports whether the program is known to have ended without being asked to. An end
// together with the process that supervises it says nothing about the program.
func isBadEnd(e lkg.Exit) bool {
	return (e.Kind == lkg.ExitCrash || e.Kind == lkg.ExitClean) && e.Fault != lkg.FaultSupervisor
}

// A sickness is a required probe that fails without a break.
type sickness struct {
	probe string
	since time.Time // monotonic
}

// after is the sickness after a round of probes: of the first required probe that fails. A probe that can't tell
// changes nothing.
func (s sickness) after(h lkg.Health, now time.Time) sickness {
	known := true
	for _, p := range h.Probes {
		known = known && !(p.Required && p.Unknown)
		if !p.Required || p.Err == nil || p.Unknown {
			continue
		}
		if s.probe == "" {
			s.since = now
		}
		s.probe = p.Name
		return s
	}
	if known {
		return sickness{}
	}
	return s
}
