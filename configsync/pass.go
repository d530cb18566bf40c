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

// syncSource reads the source once and does what follows from it. A positive duration asks for another pass then.
func (s *Syncer[T]) syncSource(ctx context.Context) (again time.Duration, err error) {
	if s.notes.isStale() {
		s.reports.forgetLanded()
	}
	spec, err := s.wanted(ctx)
	var refused *lkg.BadEntry
	switch {
	case err != nil:
	case spec == nil:
		s.notes.follow(Spec{})
		err = s.reset(ctx)
	default:
		s.notes.follow(*spec)
		again, refused, err = s.take(ctx, *spec)
	}
	if ctx.Err() != nil {
		return 0, nil
	}
	s.live.update(func(l *live[T]) {
		l.sync.pending = s.schedule.delay.pendingEdit(l.active.Ref, again, s.o.FollowJitter)
	})
	var ask *restartError
	if errors.As(err, &ask) {
		s.noteSync(ctx, spec, refused, nil)
		return 0, err
	}
	s.noteSync(ctx, spec, refused, err)
	if err == nil {
		st := s.tracker.State()
		err = s.checker.objects.pruneUnnamed(ctx, &st)
		s.live.update(func(l *live[T]) { l.extra = err })
		if err != nil {
			wake(s.notes.report)
		}
	}
	return again, err
}

// wanted asks the source, with a deadline.
func (s *Syncer[T]) wanted(ctx context.Context) (*Spec, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.CallTimeout)
	defer cancel()
	spec, err := s.o.Source.Desired(ctx)
	if err != nil || spec == nil {
		return nil, err
	}
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	return spec, nil
}

// reset makes the local config the assigned and the last known good one.
func (s *Syncer[T]) reset(ctx context.Context) error {
	st := s.tracker.State()
	if !st.Current.Ref.IsLocal() || !st.LastKnownGood.IsLocal() || st.CurrentLost || st.LastKnownGoodLost {
		if err := s.tracker.Reset(ctx); err != nil {
			return err
		}
	}
	return s.settle(ctx, true)
}

// take brings the node to the config that spec names, as far as it can be used.
func (s *Syncer[T]) take(ctx context.Context, spec Spec) (time.Duration, *lkg.BadEntry, error) {
	cur := s.tracker.State().Current.Ref
	if s.holds(ctx, cur, spec) {
		return 0, nil, s.settle(ctx, false)
	}
	obj, err := s.fetch(ctx, spec)
	if err != nil {
		return 0, nil, err
	}
	ref := obj.Ref(s.checker.keyFor(spec.Key))
	if ref.Same(cur) {
		return s.takeAgain(ctx, ref, obj)
	}
	if wait := s.schedule.delay.until(spec, cur, ref, s.o.FollowJitter); wait > 0 {
		return wait, nil, nil
	}
	if refused, err := s.refuse(ctx, ref, obj); refused != nil || err != nil {
		return 0, refused, err
	}
	return 0, nil, s.adopt(ctx, spec, ref, obj)
}

// holds reports whether cur is pinned, is what spec names, and can be loaded, so that there is nothing to fetch.
func (s *Syncer[T]) holds(ctx context.Context, cur lkg.Ref, spec Spec) bool {
	if spec.Policy == Follow || cur.IsLocal() ||
		cur.Namespace != spec.Namespace || cur.Name != spec.Name || cur.Key != s.checker.keyFor(spec.Key) ||
		(spec.UID != "" && spec.UID != cur.UID) || (spec.Digest != "" && spec.Digest != cur.Digest) {
		return false
	}
	if st := s.tracker.State(); st.BadEntry(cur) != nil {
		return true
	}
	_, err := s.checker.objects.load(ctx, cur)
	return err == nil
}

// fetch gets the object and checks that it is the one that spec names and that it may be pinned.
func (s *Syncer[T]) fetch(ctx context.Context, spec Spec) (Object, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.CallTimeout)
	defer cancel()
	obj, err := s.o.Fetcher.Fetch(ctx, spec)
	if err != nil {
		return Object{}, err
	}
	return obj, CheckObject(spec, obj)
}

// CheckObject says whether obj is the object that spec names and may be used under its policy. Its errors wrap
// [ErrMismatch] and [ErrMutable]; a Fetcher may use it, the Syncer always does.
func CheckObject(spec Spec, obj Object) error {
	if err := validateUID(obj.UID); err != nil {
		return fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	name := obj.Namespace + "/" + obj.Name
	if want := spec.Namespace + "/" + spec.Name; name != want {
		return fmt.Errorf("%w: want %q, got %q", ErrMismatch, want, name)
	}
	if spec.UID != "" && spec.UID != obj.UID {
		return fmt.Errorf("%w: %q has UID %q, the source names UID %q", ErrMismatch, name, obj.UID, spec.UID)
	}
	if got := obj.Digest(); spec.Digest != "" && spec.Digest != got {
		return fmt.Errorf("%w: %q has digest %s, the source names %s", ErrMismatch, name, got, spec.Digest)
	}
	if spec.Policy == Pin && spec.Digest == "" && !obj.Immutable {
		return fmt.Errorf("%q: %w: set immutable: true on it, or digest or policy %q in the source", name, ErrMutable, Follow)
	}
	return nil
}

// takeAgain takes a config that is assigned already, and has no checkpoint. It may be assigned because it was refused,
// and forgotten since: then it is judged anew.
func (s *Syncer[T]) takeAgain(ctx context.Context, ref lkg.Ref, obj Object) (time.Duration, *lkg.BadEntry, error) {
	if !s.live.snapshot().active.Ref.Same(ref) {
		if refused, err := s.refuse(ctx, ref, obj); refused != nil || err != nil {
			return 0, refused, err
		}
	}
	return 0, nil, s.keepCurrent(ctx, ref, obj)
}

// keepCurrent repairs a checkpoint that was lost, from the object as it was fetched again.
func (s *Syncer[T]) keepCurrent(ctx context.Context, ref lkg.Ref, obj Object) error {
	if _, err := s.checker.objects.load(ctx, ref); err != nil {
		if err := s.checker.objects.keepCheckpoint(ctx, obj); err != nil {
			return fmt.Errorf("storing the checkpoint again: %w", err)
		}
	}
	return s.settle(ctx, false)
}

// refuse returns the entry that is held against ref, judging it first if nothing is held yet. What is refused is
// assigned only while the last known good config runs, so that assigning it changes nothing on the node.
func (s *Syncer[T]) refuse(ctx context.Context, ref lkg.Ref, obj Object) (*lkg.BadEntry, error) {
	st := s.tracker.State()
	entry := st.BadEntry(ref)
	if entry == nil {
		p, book := s.checker.checkObject(ctx, ref.Key, obj), s.live.snapshot().book
		st = s.tracker.State()
		if p.check.Outcome == lkg.CheckOK {
			p.check = book.novel(ctx, &st, ref, p)
		}
		switch p.check.Outcome {
		case lkg.CheckOK:
			book.enter(ref, p)
			return nil, nil
		case lkg.CheckUnavailable, lkg.CheckUndecided:
			return nil, fmt.Errorf("judging the config: %w", p.check.Err)
		}
		if err := s.tracker.Refuse(ctx, ref, p.check); err != nil {
			return nil, err
		}
		st = s.tracker.State()
		entry = st.BadEntry(ref)
	}
	if st = s.tracker.State(); s.live.snapshot().active.Ref.Same(st.LastKnownGood) {
		return entry, s.tracker.Assign(ctx, ref)
	}
	return entry, nil
}

// adopt stores the object, records it as current, and restarts. A kill between any two steps is made good by the next
// start or the next pass. What the start reports is the whole news: that the source is clear again, and which
// generation of it was acted upon, too.
func (s *Syncer[T]) adopt(ctx context.Context, spec Spec, ref lkg.Ref, obj Object) error {
	if err := s.checker.objects.keepCheckpoint(ctx, obj); err != nil {
		return fmt.Errorf("storing the checkpoint: %w", err)
	}
	if err := s.tracker.Assign(ctx, ref); err != nil {
		return err
	}
	s.noteOutcome(ctx, &spec, nil, nil)
	return s.settle(ctx, true)
}

// pendingEdit is the edit in place that is adopted after a wait; nil where there is none to wait for.
func (f followDelay) pendingEdit(from lkg.Ref, wait, jitter time.Duration) *Change {
	if wait <= 0 {
		return nil
	}
	return &Change{Kind: Adopt, From: from, To: f.to, Why: fmt.Sprintf(
		"an edit in place; nodes adopt it spread over %s, this one at %s", jitter, f.due.UTC().Format(time.RFC3339))}
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
