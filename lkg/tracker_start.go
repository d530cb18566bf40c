// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"context"
	"fmt"
	"time"

	"github.com/belayproject/belay/internal/option"
)

// Start records that the configured thing starts, and how its previous run ended. It is the first write of every start:
// call it before anything can fail. Writes: startups, then trial. With [ErrRecord] the start is not on record; Decide
// still works, and will not use a config on trial. Each call is another start, but with [ExitCounted] the last one on
// record is taken up, if it is one of this boot and of the assigned config; else it counts as planned.
func (t *Tracker) Start(ctx context.Context, e Exit) error {
	leave, err := t.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	const op = "recording the start"
	t.started, t.recorded = true, false
	if t.o.Binary != nil {
		t.s.Binary = t.o.Binary()
	}
	t.s.beginRun(e, t.now())
	if err := t.records.putStartups(ctx, op, t.s.Starts); err != nil {
		return err
	}
	if err := t.records.putTrial(ctx, op, &t.s); err != nil {
		return err
	}
	t.recorded = true
	return nil
}

// beginRun takes up a start at that time, which begins a new run. e is how the run before ended.
func (s *State) beginRun(e Exit, at time.Time) {
	if e.Kind == ExitCounted && s.isBegun() {
		s.Soak = s.Soak.nextRun()
		return
	}
	prev, marker := s.lastStart(), s.freshMarker()
	st := Start{At: at, BootID: s.BootID, Assignment: s.Current.ID, Good: s.GoodID, N: 1}
	now := moment{st.At, s.BootID}
	st.Cause, st.Detail = classify(s.lastEvidence(), marker, now, e)
	if marker.announces(s.lastEvidence(), now) {
		st.MarkerID, s.Consumed = marker.ID, marker.ID
	}
	if prev != nil {
		st.After = prev.Used
	}
	s.Soak = s.Soak.nextRun()
	st.ending = ending{e.Signature, e.Witnessed, s.Soak.lived, boundLines(e.Last)}
	s.Soak.lived = 0
	if st.Cause != CausePlanned && st.Cause != CauseAdoption {
		s.Soak.Sum, s.Soak.Failed = 0, 0
	}
	for i := range s.Starts {
		s.Starts[i].Last = nil
	}
	for i := range s.Starts {
		if o := &s.Starts[i]; o.Assignment == st.Assignment && o.N >= st.N {
			st.N = o.N + 1
		}
	}
	s.addStart(st)
	if st.counts() {
		s.Soak.Accumulated = 0
	}
}

// isBegun reports whether the last start on record can be the one that happens now.
func (s *State) isBegun() bool {
	last := s.lastStart()
	return last != nil && last.evidenced() && last.BootID == s.BootID && last.Assignment == s.Current.ID &&
		s.freshMarker() == nil
}

// Decide picks the config to use and records what must be on record before it may be used: a newly rejected config
// first, then what this start uses and which config is under suspicion. Deciding again gives the same. Killed between
// the two writes, the config is listed, and the next start decides by that.
//
// With a [*BaselineError] nothing may be used. With [ErrRecord] the verdict is valid and safe to act on; tell
// somebody about the disk. With any other error there is no verdict.
func (t *Tracker) Decide(ctx context.Context, limits func(Ref) Limits, check func(Ref) Check) (Verdict, error) {
	required := option.For("lkg.Tracker.Decide", ErrInvalid)
	required.Require("check", check, "what judges a config")
	if err := required.Err(); err != nil {
		return Verdict{}, err
	}
	leave, err := t.enter(ctx)
	if err != nil {
		return Verdict{}, err
	}
	defer leave()
	v := Decide(Input{State: t.s, Recorded: t.recorded, Limits: limits, Policy: t.o.Policy}, check)
	if v.Refuse != nil {
		return v, v.Refuse
	}
	t.limits = Limits{}
	if limits != nil {
		t.limits = limits(v.Use)
	}
	return v, t.record(ctx, &v)
}

// record writes what a verdict changed: the bad entry before anything that follows from it.
func (t *Tracker) record(ctx context.Context, v *Verdict) error {
	if v.NewlyRejected {
		v.Rejected.Time = t.now()
		t.records.dirtyBad = t.s.addBad(*v.Rejected) || t.records.dirtyBad
	}
	if bad := v.after.bad; bad != nil {
		bad.Time = t.now()
		t.records.dirtyBad = t.s.addBad(*bad) || t.records.dirtyBad
	}
	t.note(v)
	if t.records.dirtyBad {
		if err := t.records.putBad(ctx, "recording the rejected config", &t.s); err != nil {
			return err
		}
	}
	if t.records.dirtyTrial {
		return t.records.putTrial(ctx, "recording the decision", &t.s)
	}
	return nil
}

// note puts what the start uses, and the case, into memory.
func (t *Tracker) note(v *Verdict) {
	if applyCase(t, v.Case, v.after.settle) {
		v.Case, t.records.dirtyTrial = t.s.Case, true
	}
	if !t.started {
		return // a caller that asks without a start changes no evidence
	}
	last, used := t.s.lastStart(), usedBy(&t.s, v.Role, v.Use)
	if last.Used == (Used{}) && last.Assignment != t.s.Current.ID {
		last.Assignment, last.N = t.s.Current.ID, 1 // assigned since the start: it runs what is assigned now
		t.records.dirtyTrial = true
	}
	if last.Used != used {
		if !last.After.is(v.Use) {
			t.s.Soak.Sum, t.s.Soak.Failed = 0, 0
		}
		last.Used = used
		t.records.dirtyTrial = true
	}
}

// PlanRestart announces the next start, which then counts against nobody. kind is CauseAdoption or CausePlanned.
// Call it right before a restart on purpose, also from the handler of a stop signal. Writes: planned-restart.
func (t *Tracker) PlanRestart(ctx context.Context, kind Cause) error {
	if kind != CauseAdoption && kind != CausePlanned {
		return &fieldError{"kind", fmt.Sprintf("%q", kind), "must be Adoption or Planned"}
	}
	leave, err := t.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	m := restartMarker{ID: t.o.ID(), At: t.now(), Kind: kind, BootID: t.s.BootID}
	if err := t.records.put(ctx, "planning a restart", streamMarker, m.encode); err != nil {
		return err
	}
	t.s.Marker = &m
	return nil
}
