// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"context"
	"fmt"
	"time"
)

// Healthy takes a health report about the running config, adds up its healthy time, and promotes or rejects it, by the
// limits that the last Decide was given for it. Added-up time is written every 10 s of it at most; what a crash loses
// only lengthens the trial. A rejection is on record when Healthy returns it without an error. Writes: last-known-good,
// or bad-configs, or trial.
func (t *Tracker) Healthy(ctx context.Context, h Health) (Progress, error) {
	leave, err := t.enter(ctx)
	if err != nil {
		return Progress{}, err
	}
	defer leave()
	p := Promote(t.s, t.limits, h)
	added := p.Soak.Accumulated - t.s.Soak.Accumulated
	t.s.Soak = p.Soak
	switch p.Result {
	case ResultPromoted:
		if err := t.promote(ctx); err != nil {
			p.Result, p.Why = ResultWait, "healthy for long enough, but not on record: "+err.Error()
			return p, err
		}
		return p, nil
	case ResultRejected:
		return p, t.rejectRunning(ctx, &p)
	case ResultWait:
		return p, t.save(ctx, added)
	default:
		return p, t.settle(ctx, h)
	}
}

func (t *Tracker) rejectRunning(ctx context.Context, p *Progress) error {
	if p.Rejected.Time.IsZero() {
		p.Rejected.Time = t.now()
	}
	if !t.s.addBad(*p.Rejected) && !t.dirtyBad {
		return nil
	}
	return t.putBad(ctx, "recording the rejected config")
}

// save writes added-up healthy time, not too often.
func (t *Tracker) save(ctx context.Context, added time.Duration) error {
	t.unsaved += max(added, 0)
	if t.unsaved < flushEvery {
		return nil
	}
	return t.putTrial(ctx, "recording healthy time")
}

// settle clears the count of a fallback that was healthy for a whole trial without a break: rare crashes over months
// are no reason to leave it.
func (t *Tracker) settle(ctx context.Context, h Health) error {
	last := t.s.lastStart()
	if last == nil || !last.Used.fallback() {
		return nil
	}
	if h.failing() != "" {
		t.fallbackRun = 0
		return nil
	}
	t.fallbackRun += h.elapsed()
	if last.Settled || t.fallbackRun <= t.limits.effective().Trial {
		return nil
	}
	for i := range t.s.Starts {
		t.s.Starts[i].Settled = true
	}
	return t.putTrial(ctx, "recording a healthy fallback")
}

// promote replaces the last known good config by the current one, in one write.
func (t *Tracker) promote(ctx context.Context) error {
	const op = "promoting"
	if t.o.Keep != nil {
		if err := t.o.Keep(ctx, t.s.Current.Ref); err != nil {
			return fmt.Errorf("%s config (UID: %s): keeping its copy: %w", op, t.s.Current.Ref.UID, err)
		}
	}
	next := t.cur
	next.previous, next.promotedAt = t.nextPrevious(), t.now()
	return t.putGood(ctx, op, next)
}

// nextPrevious is the config before the one that is about to be promoted: the present last known good one, unless that
// crashed as a fallback.
func (t *Tracker) nextPrevious() Ref {
	switch t.s.floor().Role {
	case RoleLocal:
		return Ref{}
	case RolePrevious:
		return t.s.Previous
	default:
		return t.s.LastKnownGood
	}
}

// Promote makes the running current config the last known good one on somebody's word, without waiting for its trial.
// Errors: ErrNotRunning if the last start did not use it, ErrRejected if it is listed as bad. Writes: last-known-good.
func (t *Tracker) Promote(ctx context.Context) error {
	leave, err := t.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	r := t.s.Current.Ref
	switch {
	case t.s.badEntry(r) != nil:
		return fmt.Errorf("promoting config (UID: %s): %w", r.UID, ErrRejected)
	case !t.s.running():
		return fmt.Errorf("promoting config (UID: %s): %w", r.UID, ErrNotRunning)
	case !t.s.OnTrial():
		return nil
	}
	return t.promote(ctx)
}
