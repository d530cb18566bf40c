// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"context"
	"fmt"
)

// Healthy takes a health report about the running config, adds up its healthy time, and promotes it or judges it as the
// rule of promotion says, by the limits that the last Decide was given for it. Added-up time is written every 10 s of
// it at most, and the length of a run whenever it has doubled, while ends of earlier runs count; what a crash loses
// only lengthens the trial. What it returns without an error is on record. Writes:
// last-known-good, or bad-configs, then trial. Killed between these two, the config is listed, and the next start
// decides by that.
func (t *Tracker) Healthy(ctx context.Context, h Health) (Progress, error) {
	leave, err := t.enter(ctx)
	if err != nil {
		return Progress{}, err
	}
	defer leave()
	p := judgeHealth(t.s, t.limits, h)
	added := p.Soak.Accumulated - t.s.Soak.Accumulated
	t.s.Soak = p.Soak
	switch {
	case p.Result == ResultPromoted:
		if err := t.promote(ctx); err != nil {
			p.Result, p.Why = resultWait, "healthy for long enough, but not on record: "+err.Error()
			return p, err
		}
		return p, nil
	case p.Result == ResultRejected:
		if err := t.rejectByHealth(ctx, &p); err != nil {
			return p, err
		}
	}
	if changed := applyCase(t, p.Case, p.settle); changed || t.records.dirtyTrial {
		return p, t.records.putTrial(ctx, "recording what a health report has shown", &t.s)
	}
	return p, t.records.saveHealth(ctx, added, &t.s)
}

// applyCase takes a case into memory, and settles the starts so far. It reports whether there is something to write.
func applyCase(t *Tracker, c *Case, settle settlement) (changed bool) {
	old := t.s.openCase()
	if c != nil && (old == nil || c.Phase != old.Phase || c.Suspect != old.Suspect) {
		fresh := *c
		fresh.At = t.now()
		c = &fresh
	}
	changed = c != old
	t.s.Case = c
	return t.s.settleStarts(settle) || changed
}

// rejectByHealth lists a config as bad by a health report.
func (t *Tracker) rejectByHealth(ctx context.Context, p *Progress) error {
	if p.Rejected.Time.IsZero() {
		p.Rejected.Time, p.Rejected.Binary = t.now(), t.s.Binary
	}
	return t.records.listBad(ctx, "recording the rejected config", &t.s, *p.Rejected)
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
	next.previous, next.promotedAt = t.s.nextPrevious(), t.now()
	return t.putGood(ctx, op, next)
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
