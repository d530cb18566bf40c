// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/lkg"
)

// An adopter brings the node to the config that the source names: it fetches the object, judges it, stores it, assigns
// it, and has it used. What it can't use it lists as bad. A kill between any two of its steps is made good by the next
// start or the next pass.
type adopter[T any] struct {
	fetcher  Fetcher
	timeout  time.Duration // of a fetch
	jitter   time.Duration // see Options.FollowJitter
	checker  *checker[T]
	tracker  *lkg.Tracker
	live     *liveState[T]
	restarts *restartControl[T]
}

// resetToLocal makes the local config the assigned and the last known good one.
func (a *adopter[T]) resetToLocal(ctx context.Context) error {
	st := a.tracker.State()
	if !st.Current.Ref.IsLocal() || !st.LastKnownGood.IsLocal() || st.CurrentLost || st.LastKnownGoodLost {
		if err := a.tracker.Reset(ctx); err != nil {
			return err
		}
	}
	return a.restarts.restartIfNeeded(ctx, true)
}

// takeSpec brings the node to the config that spec names, as far as it can be used. A positive duration is for how long
// an edit in place waits for its turn.
func (a *adopter[T]) takeSpec(
	ctx context.Context, spec Spec, delay *followDelay,
) (time.Duration, *lkg.BadEntry, error) {
	cur := a.tracker.State().Current.Ref
	if a.isHeld(ctx, cur, spec) {
		return 0, nil, a.restarts.restartIfNeeded(ctx, false)
	}
	obj, err := a.fetch(ctx, spec)
	if err != nil {
		return 0, nil, err
	}
	ref := obj.Ref(a.checker.keyFor(spec.Key))
	if ref.Same(cur) {
		return a.takeAgain(ctx, ref, obj)
	}
	if wait := delay.until(spec, cur, ref, a.jitter); wait > 0 {
		return wait, nil, nil
	}
	if refused, err := a.findRefusal(ctx, ref, obj); refused != nil || err != nil {
		return 0, refused, err
	}
	return 0, nil, a.adoptObject(ctx, spec, ref, obj)
}

// isHeld reports whether cur is pinned, is what spec names, and can be loaded, so that there is nothing to fetch.
func (a *adopter[T]) isHeld(ctx context.Context, cur lkg.Ref, spec Spec) bool {
	if spec.Policy == Follow || cur.IsLocal() ||
		cur.Namespace != spec.Namespace || cur.Name != spec.Name || cur.Key != a.checker.keyFor(spec.Key) ||
		(spec.UID != "" && spec.UID != cur.UID) || (spec.Digest != "" && spec.Digest != cur.Digest) {
		return false
	}
	if st := a.tracker.State(); st.BadEntry(cur) != nil {
		return true
	}
	_, err := a.checker.objects.load(ctx, cur)
	return err == nil
}

// fetch gets the object and checks that it is the one that spec names and that it may be pinned.
func (a *adopter[T]) fetch(ctx context.Context, spec Spec) (Object, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	obj, err := a.fetcher.Fetch(ctx, spec)
	if err != nil {
		return Object{}, err
	}
	return obj, CheckObject(spec, obj)
}

// takeAgain takes a config that is assigned already, and has no checkpoint. It may be assigned because it was refused,
// and forgotten since: then it is judged anew.
func (a *adopter[T]) takeAgain(ctx context.Context, ref lkg.Ref, obj Object) (time.Duration, *lkg.BadEntry, error) {
	if !a.live.snapshot().active.Ref.Same(ref) {
		if refused, err := a.findRefusal(ctx, ref, obj); refused != nil || err != nil {
			return 0, refused, err
		}
	}
	return 0, nil, a.keepCurrent(ctx, ref, obj)
}

// keepCurrent repairs a checkpoint that was lost, from the object as it was fetched again.
func (a *adopter[T]) keepCurrent(ctx context.Context, ref lkg.Ref, obj Object) error {
	if _, err := a.checker.objects.load(ctx, ref); err != nil {
		if err := a.checker.objects.keepCheckpoint(ctx, obj); err != nil {
			return fmt.Errorf("storing the checkpoint again: %w", err)
		}
	}
	return a.restarts.restartIfNeeded(ctx, false)
}

// findRefusal returns the entry that is held against ref, judging it first if nothing is held yet. What is refused is
// assigned only while the last known good config runs, so that assigning it changes nothing on the node.
func (a *adopter[T]) findRefusal(ctx context.Context, ref lkg.Ref, obj Object) (*lkg.BadEntry, error) {
	st := a.tracker.State()
	entry := st.BadEntry(ref)
	if entry == nil {
		p, book := a.checker.checkObject(ctx, ref.Key, obj), a.live.snapshot().book
		st = a.tracker.State()
		if p.check.Outcome == lkg.CheckOK {
			p.check = book.judgeChange(ctx, &st, ref, p)
		}
		switch p.check.Outcome {
		case lkg.CheckOK:
			book.keepPage(ref, p)
			return nil, nil
		case lkg.CheckUnavailable, lkg.CheckUndecided:
			return nil, fmt.Errorf("judging the config: %w", p.check.Err)
		}
		if err := a.tracker.Refuse(ctx, ref, p.check); err != nil {
			return nil, err
		}
		st = a.tracker.State()
		entry = st.BadEntry(ref)
	}
	if a.live.snapshot().active.Ref.Same(st.LastKnownGood) {
		return entry, a.tracker.Assign(ctx, ref)
	}
	return entry, nil
}

// adoptObject stores the object, records it as current, and restarts. A kill between any two steps is made good by the
// next start or the next pass. What the start reports is the whole news: that the source is clear again, and which
// generation of it was acted upon, too.
func (a *adopter[T]) adoptObject(ctx context.Context, spec Spec, ref lkg.Ref, obj Object) error {
	if err := a.checker.objects.keepCheckpoint(ctx, obj); err != nil {
		return fmt.Errorf("storing the checkpoint: %w", err)
	}
	if err := a.tracker.Assign(ctx, ref); err != nil {
		return err
	}
	a.noteOutcome(ctx, &spec, nil, nil)
	return a.restarts.restartIfNeeded(ctx, true)
}

// noteOutcome takes note of the result of a pass, in the records and for the status.
func (a *adopter[T]) noteOutcome(ctx context.Context, spec *Spec, refused *lkg.BadEntry, err error) {
	found := describeOutcome(spec, err)
	storage := a.tracker.SetDesired(ctx, found)
	a.live.update(func(l *live[T]) {
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

// describeOutcome translates the result of a pass into what the next start needs to know.
func describeOutcome(spec *Spec, err error) lkg.Outcome {
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

// A followDelay spreads the adoption of edits in place over time.
type followDelay struct {
	to  lkg.Ref
	due time.Time
}

// until says how long to wait before an edit in place, or another object of the same name, is adopted. Each version
// draws anew.
func (f *followDelay) until(spec Spec, from, to lkg.Ref, jitter time.Duration) time.Duration {
	if spec.Policy != Follow || from.Namespace != to.Namespace || from.Name != to.Name || jitter <= 0 {
		return 0
	}
	if !f.to.Same(to) {
		f.to, f.due = to, time.Now().Add(backoff.Jitter(jitter, 0, 1, nil))
	}
	return time.Until(f.due)
}

// pendingEdit is the edit in place that is adopted after a wait; nil where there is none to wait for.
func (f followDelay) pendingEdit(from lkg.Ref, wait, jitter time.Duration) *Change {
	if wait <= 0 {
		return nil
	}
	return &Change{Kind: Adopt, From: from, To: f.to, Why: fmt.Sprintf(
		"an edit in place; nodes adopt it spread over %s, this one at %s", jitter, f.due.UTC().Format(time.RFC3339))}
}
