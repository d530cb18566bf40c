// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belayproject/belay/lkg"
)

// restartError carries the error of a Restarter through the passes: it ends Run.
type restartError struct{ err error }

func (e *restartError) Error() string { return e.err.Error() }

// next is what a planned restart would lead to, by the same function that decides at a start. Trouble in finding the
// wanted config is left out: it never changes a live process. recorded says that the restart's own record can be relied
// upon.
func (s *Syncer[T]) next(ctx context.Context, now live[T], recorded bool) lkg.Verdict {
	st := s.tracker.State()
	st.Desired = lkg.Outcome{Kind: lkg.DesiredCorrect}
	return lkg.Decide(lkg.Input{State: st, Recorded: recorded, Limits: now.book.limits, Policy: s.o.Policy},
		func(r lkg.Ref) lkg.Check { return now.book.judged(ctx, &st, r) })
}

// settle restarts what is configured if the next start would use another config than the running one. written says that
// a record was just acknowledged, so the store works even if it refused the last start.
func (s *Syncer[T]) settle(ctx context.Context, written bool) error {
	if err := s.restarting.acquire(ctx); err != nil {
		return err
	}
	defer s.restarting.release()
	now := s.live.snapshot()
	v := s.next(ctx, now, written || now.recorded)
	if v.Refuse != nil || v.Use.Same(now.active.Ref) {
		return nil
	}
	if now.asked.to.Same(v.Use) && !now.asked.at.IsZero() && time.Since(now.asked.at) < s.o.RetryMax {
		return nil // under way
	}
	c := change(now.active.Ref, v)
	takeBaselines(ctx, v, now.epoch, s.probes.probes, s.tracker)
	meanwhile, err := s.planRestart(ctx, v, now.epoch)
	if meanwhile {
		return nil // it wakes the loops, which compare again
	}
	if err != nil && c.Kind != RollBack {
		return err // to go back needs no record: a start that isn't on record uses nothing that isn't known to be good
	}
	s.live.updateRun(now.epoch, func(l *live[T]) { l.asked = asked{to: v.Use, at: time.Now()} })
	s.beforeRestart(ctx, c)
	if err := s.o.Restarter.Restart(ctx, c); err != nil {
		if ctx.Err() != nil { // it did not come to it: the next pass asks again
			s.live.updateRun(now.epoch, func(l *live[T]) { l.asked = asked{} })
			return ctx.Err()
		}
		return &restartError{fmt.Errorf("restarting for %s: %w", lkgName(v.Use), err)}
	}
	return nil
}

// planRestart writes the marker without which the restart would count against the config. meanwhile says that a start
// has come after that epoch: a restart would end what has just begun, so nothing is written.
func (s *Syncer[T]) planRestart(ctx context.Context, v lkg.Verdict, epoch int) (meanwhile bool, err error) {
	if err := s.turn.acquire(ctx); err != nil {
		return false, err
	}
	defer s.turn.release()
	if s.live.snapshot().epoch != epoch {
		return true, nil
	}
	cause := lkg.CausePlanned
	if v.OnTrial {
		cause = lkg.CauseAdoption
	}
	if err := s.tracker.PlanRestart(ctx, cause); err != nil {
		return false, fmt.Errorf("recording the planned restart: %w", err)
	}
	return false, nil
}

// flushTimeout is how long a restart waits for those who are to be told first.
const flushTimeout = 2 * time.Second

func (s *Syncer[T]) beforeRestart(ctx context.Context, c Change) {
	if s.o.BeforeRestart == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	s.o.BeforeRestart(ctx, s.status(ctx), c)
}

func change(from lkg.Ref, v lkg.Verdict) Change {
	c := Change{From: from, To: v.Use, Why: v.Condition.Message + ": " + v.Condition.Reason}
	switch {
	case v.Role != lkg.RoleCurrent:
		c.Kind = RollBack
	case v.Use.IsLocal():
		c.Kind = Reset
	default:
		c.Kind = Adopt
	}
	return c
}

func lkgName(r lkg.Ref) string {
	if r.IsLocal() {
		return "the local config"
	}
	return fmt.Sprintf("%q (UID: %s)", r.Namespace+"/"+r.Name, r.UID)
}

// outcome translates the result of a pass into what the next start needs to know.
func outcome(spec *Spec, err error) lkg.Outcome {
	var invalid *InvalidError
	o := lkg.Outcome{Kind: lkg.DesiredCorrect}
	switch {
	case err == nil && spec == nil:
		o.Kind = lkg.DesiredEmpty
	case err == nil:
	case errors.As(err, &invalid):
		o.Kind = lkg.DesiredInvalid
	case errors.Is(err, ErrMissing):
		o.Kind = lkg.DesiredMissing
	case errors.Is(err, ErrMismatch), errors.Is(err, ErrMutable):
		o.Kind = lkg.DesiredMismatch
	case errors.Is(err, ErrForbidden):
		o.Kind = lkg.DesiredForbidden
	default:
		o.Kind = lkg.DesiredUnreachable
	}
	if err != nil {
		o.Cause = err.Error()
	}
	return o
}

// noteSync takes note of the result of a pass, and has it reported.
func (s *Syncer[T]) noteSync(ctx context.Context, spec *Spec, refused *lkg.BadEntry, err error) {
	s.noteOutcome(ctx, spec, refused, err)
	wake(s.notes.report)
}

// noteOutcome takes note of the result of a pass, in the records and for the status.
func (s *Syncer[T]) noteOutcome(ctx context.Context, spec *Spec, refused *lkg.BadEntry, err error) {
	found := outcome(spec, err)
	storage := s.tracker.SetDesired(ctx, found)
	s.live.update(func(l *live[T]) {
		l.sync.err, l.sync.refused, l.sync.found = err, refused, true
		l.sync.silent = spec == nil && (found.Kind == lkg.DesiredUnreachable || found.Kind == lkg.DesiredForbidden)
		if spec != nil && err == nil {
			l.sync.generation = spec.Generation
		}
		if storage != nil {
			l.storage = storage
		}
	})
}
