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

// watchSource keeps a watch on the source, backing off while there is none.
func (s *Syncer[T]) watchSource(ctx context.Context) error {
	return s.keepWatching(ctx, s.o.Source.Watch)
}

// keepWatching calls watch again and again. Each new watch is followed by a pass, for what was missed in between.
func (s *Syncer[T]) keepWatching(ctx context.Context, watch func(context.Context, func()) error) error {
	b := s.retryBackoff()
	for ctx.Err() == nil {
		began := time.Now()
		_ = watch(ctx, s.stir) // what is wrong shows when the source is read
		if time.Since(began) > s.o.RetryMax {
			b.Reset()
		}
		s.stir()
		if !pause(ctx, jittered(b.Next()), nil) {
			return nil
		}
	}
	return nil
}

// syncLoop reads the source after each wake-up, and again after a while when something was in the way.
func (s *Syncer[T]) syncLoop(ctx context.Context) error {
	f := follower{stop: func() {}}
	defer func() { f.stop() }()
	b := s.retryBackoff()
	for {
		again, err := s.pass(ctx, &f)
		var ask *restartError
		if errors.As(err, &ask) {
			return ask.err
		}
		switch {
		case err != nil:
			again = jittered(b.Next())
		default:
			b.Reset()
			again = s.recheck(again)
		}
		if !pause(ctx, again, s.wakeSync) {
			return nil
		}
	}
}

// stir asks for a pass because the world may have changed: what was reported is compared with it again.
func (s *Syncer[T]) stir() {
	s.stirred.Store(true)
	wake(s.wakeSync)
}

// compare asks for a pass because this process has changed, and nothing else has.
func (s *Syncer[T]) compare() {
	s.inner.Store(true)
	wake(s.wakeSync)
}

// recheck asks for another pass where none is due: soon while a restart is under way, in case it never comes, and otherwise
// after a long while, in case a watch is dead and doesn't say so.
func (s *Syncer[T]) recheck(again time.Duration) time.Duration {
	switch {
	case again > 0:
		return again
	case !s.snapshot().asked.at.IsZero():
		return s.o.RetryMax
	default:
		return jittered(s.o.Resync)
	}
}

// pass reads the source once and does what follows from it. A positive duration asks for another pass then.
func (s *Syncer[T]) pass(ctx context.Context, f *follower) (again time.Duration, err error) {
	if inner, stirred := s.inner.Swap(false), s.stirred.Swap(false); stirred || !inner {
		s.forgetReported()
	}
	spec, err := s.wanted(ctx)
	var refused *lkg.BadEntry
	switch {
	case err != nil:
	case spec == nil:
		s.watchObject(ctx, f, nil)
		err = s.reset(ctx)
	default:
		s.watchObject(ctx, f, spec)
		again, refused, err = s.take(ctx, *spec, f)
	}
	if ctx.Err() != nil {
		return 0, nil
	}
	var ask *restartError
	if errors.As(err, &ask) {
		s.noteSync(ctx, spec, refused, nil)
		return 0, err
	}
	s.noteSync(ctx, spec, refused, err)
	if err == nil {
		err = s.prune(ctx)
		s.noteExtra(err)
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
func (s *Syncer[T]) take(ctx context.Context, spec Spec, f *follower) (time.Duration, *lkg.BadEntry, error) {
	cur := s.tracker.State().Current.Ref
	if s.holds(ctx, cur, spec) {
		return 0, nil, s.settle(ctx, false)
	}
	obj, err := s.fetch(ctx, spec)
	if err != nil {
		return 0, nil, err
	}
	ref := obj.Ref(s.keyFor(spec.Key))
	if ref.Same(cur) {
		return s.takeAgain(ctx, ref, obj)
	}
	if wait := f.delay(spec, cur, ref, s.o.FollowJitter); wait > 0 {
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
		cur.Namespace != spec.Namespace || cur.Name != spec.Name || cur.Key != s.keyFor(spec.Key) ||
		(spec.UID != "" && spec.UID != cur.UID) || (spec.Digest != "" && spec.Digest != cur.Digest) {
		return false
	}
	if listed(s.tracker.State(), cur) != nil {
		return true
	}
	_, err := s.load(ctx, cur)
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

// CheckObject says whether obj is the object that spec names and may be used under its policy. Its errors wrap [ErrMismatch]
// and [ErrMutable]; a Fetcher may use it, the Syncer always does.
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

// takeAgain takes a config that is assigned already, and has no checkpoint. It may be assigned because it was refused, and forgotten since:
// then it is judged anew.
func (s *Syncer[T]) takeAgain(ctx context.Context, ref lkg.Ref, obj Object) (time.Duration, *lkg.BadEntry, error) {
	if !s.snapshot().active.Ref.Same(ref) {
		if refused, err := s.refuse(ctx, ref, obj); refused != nil || err != nil {
			return 0, refused, err
		}
	}
	return 0, nil, s.keepCurrent(ctx, ref, obj)
}

// keepCurrent repairs a checkpoint that was lost, from the object as it was fetched again.
func (s *Syncer[T]) keepCurrent(ctx context.Context, ref lkg.Ref, obj Object) error {
	if _, err := s.load(ctx, ref); err != nil {
		if err := s.o.Store.Put(ctx, checkpointStream(ref.UID), obj.Raw); err != nil {
			return fmt.Errorf("storing the checkpoint again: %w", err)
		}
	}
	return s.settle(ctx, false)
}

// refuse returns the entry that is held against ref, judging it first if nothing is held yet. What is refused is assigned only
// while the last known good config runs, so that assigning it changes nothing on the node.
func (s *Syncer[T]) refuse(ctx context.Context, ref lkg.Ref, obj Object) (*lkg.BadEntry, error) {
	entry := listed(s.tracker.State(), ref)
	if entry == nil {
		p, book, st := s.judgeRemote(ctx, ref.Key, obj), s.snapshot().book, s.tracker.State()
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
		entry = listed(s.tracker.State(), ref)
	}
	if st := s.tracker.State(); s.snapshot().active.Ref.Same(st.LastKnownGood) {
		return entry, s.tracker.Assign(ctx, ref)
	}
	return entry, nil
}

// adopt stores the object, records it as current, and restarts. A kill between any two steps is made good by the next start or
// the next pass. What the start reports is the whole news: that the source is clear again, and which generation of it was acted upon, too.
func (s *Syncer[T]) adopt(ctx context.Context, spec Spec, ref lkg.Ref, obj Object) error {
	if err := s.o.Store.Put(ctx, checkpointStream(ref.UID), obj.Raw); err != nil {
		return fmt.Errorf("storing the checkpoint: %w", err)
	}
	if err := s.tracker.Assign(ctx, ref); err != nil {
		return err
	}
	s.noteOutcome(ctx, &spec, nil, nil)
	return s.settle(ctx, true)
}

// follower spreads the adoption of edits in place over time and watches the object that is followed.
type follower struct {
	spec Spec
	stop func()
	to   lkg.Ref
	due  time.Time
}

// delay says how long to wait before an edit in place, or another object of the same name, is adopted. Each version draws anew.
func (f *follower) delay(spec Spec, from, to lkg.Ref, jitter time.Duration) time.Duration {
	if spec.Policy != Follow || from.Namespace != to.Namespace || from.Name != to.Name || jitter <= 0 {
		return 0
	}
	if !f.to.Same(to) {
		f.to, f.due = to, time.Now().Add(backoff.Jitter(jitter, 0, 1, nil))
	}
	return time.Until(f.due)
}

// watchObject watches the object of a followed spec, and stops watching the one before.
func (s *Syncer[T]) watchObject(ctx context.Context, f *follower, spec *Spec) {
	var want Spec
	if spec != nil && spec.Policy == Follow {
		want = *spec
		want.Generation = 0
	}
	if want == f.spec {
		return
	}
	f.stop()
	f.spec, f.stop = want, func() {}
	fetcher, ok := s.o.Fetcher.(FollowFetcher)
	if want == (Spec{}) || !ok {
		return
	}
	g := newGroup(ctx)
	g.run(func(ctx context.Context) error {
		return s.keepWatching(ctx, func(ctx context.Context, changed func()) error { return fetcher.WatchObject(ctx, want, changed) })
	})
	f.stop = func() { g.cancel(nil); _ = g.wait() }
}
