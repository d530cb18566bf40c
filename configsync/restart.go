// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"fmt"
	"time"

	"github.com/belayproject/belay/lkg"
)

// restartError carries the error of a Restarter through the passes: it ends Run.
type restartError struct{ err error }

func (e *restartError) Error() string { return e.err.Error() }

// A restartControl restarts what is configured when the next start would use another config than the running one. It
// announces each restart in the records first, without which the restart would count against the config.
type restartControl[T any] struct {
	restarter Restarter
	policy    lkg.Policy
	retryMax  time.Duration // how long a restart that was asked for has to come
	probes    []Probe
	before    func(context.Context, Status, Change) // Options.BeforeRestart; may be nil
	status    func(context.Context) Status
	tracker   *lkg.Tracker
	live      *liveState[T]
	turn      semaphore // held while what runs is compared with what should run, and acted upon
}

// restartIfRunning acts at once where something runs; otherwise the next start does.
func (r *restartControl[T]) restartIfRunning(ctx context.Context) error {
	if r.live.snapshot().epoch == 0 || r.restarter == nil {
		return nil
	}
	return r.restartIfNeeded(ctx, false)
}

// restartIfNeeded restarts what is configured if the next start would use another config than the running one. written
// says that a record was just acknowledged, so the store works even if it refused the last start.
func (r *restartControl[T]) restartIfNeeded(ctx context.Context, written bool) error {
	if err := r.turn.acquire(ctx); err != nil {
		return err
	}
	defer r.turn.release()
	now := r.live.snapshot()
	v := now.nextVerdict(ctx, r.tracker.State(), r.policy, written || now.recorded)
	if v.Refuse != nil || v.Use.Same(now.active.Ref) {
		return nil
	}
	if now.asked.to.Same(v.Use) && !now.asked.at.IsZero() && time.Since(now.asked.at) < r.retryMax {
		return nil // under way
	}
	c := newChange(now.active.Ref, v)
	takeBaselines(ctx, v, now.epoch, r.probes, r.tracker)
	meanwhile, err := r.recordPlan(ctx, v, now.epoch)
	if meanwhile {
		return nil // it wakes the loops, which compare again
	}
	if err != nil && c.Kind != RollBack {
		return err // to go back needs no record: a start that isn't on record uses nothing that isn't known to be good
	}
	r.live.updateRun(now.epoch, func(l *live[T]) { l.asked = asked{to: v.Use, at: time.Now()} })
	r.callBefore(ctx, c)
	if err := r.restarter.Restart(ctx, c); err != nil {
		if ctx.Err() != nil { // it did not come to it: the next pass asks again
			r.live.updateRun(now.epoch, func(l *live[T]) { l.asked = asked{} })
			return ctx.Err()
		}
		return &restartError{fmt.Errorf("restarting for %s: %w", lkgName(v.Use), err)}
	}
	return nil
}

// recordPlan writes the marker without which the restart would count against the config. meanwhile says that a start
// has come after that epoch: a restart would end what has just begun, so nothing is written.
func (r *restartControl[T]) recordPlan(ctx context.Context, v lkg.Verdict, epoch int) (meanwhile bool, err error) {
	if err := r.live.turn.acquire(ctx); err != nil {
		return false, err
	}
	defer r.live.turn.release()
	if r.live.snapshot().epoch != epoch {
		return true, nil
	}
	cause := lkg.CausePlanned
	if v.OnTrial {
		cause = lkg.CauseAdoption
	}
	if err := r.tracker.PlanRestart(ctx, cause); err != nil {
		return false, fmt.Errorf("recording the planned restart: %w", err)
	}
	return false, nil
}

// flushTimeout is how long a restart waits for those who are to be told first.
const flushTimeout = 2 * time.Second

// callBefore tells the user of the package about a restart before it happens.
func (r *restartControl[T]) callBefore(ctx context.Context, c Change) {
	if r.before == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	r.before(ctx, r.status(ctx), c)
}

func newChange(from lkg.Ref, v lkg.Verdict) Change {
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
