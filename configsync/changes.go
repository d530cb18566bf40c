// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"

	"github.com/belayproject/belay/lkg"
)

// A ChangePolicy says what a node may change, and what a change takes from it. Package configsync/fields has one.
type ChangePolicy interface {
	// Judge compares the entry of two configs. from is empty for built-in defaults. disruption is None, Restart or Drain,
	// or empty where it is not known. The error says that the change is refused; it names fields and reasons, never a
	// value.
	Judge(from, to []byte) (disruption string, err error)
}

// An Inspector judges an object itself, bytes and all.
type Inspector interface {
	// Inspect returns nil, or an error that says what is wrong and repeats nothing of the object's data. An error that
	// wraps [ErrUndecided] says nothing about the object: it is asked again. It must end with ctx.
	Inspect(ctx context.Context, key string, o Object) error
}

// ErrUndecided is wrapped by the errors of an [Inspector] or a [Probe] that could not find out what to say.
var ErrUndecided = errors.New("the object could not be judged")

// ErrBelow is wrapped by the error of a [Probe] that asks what lies below every config, such as the container runtime.
// While a required probe fails so, the trial stands still: no time is credited, and none counts as failing.
var ErrBelow = errors.New("what every config needs does not work")

// inspected turns the answer of an Inspector into that of a check. A panic of an Inspector is an error of the object.
func inspected(ctx context.Context, all []Inspector, key string, o Object) (c lkg.Check) {
	defer func() {
		if r := recover(); r != nil {
			c = lkg.Check{Outcome: lkg.CheckInvalid, Err: fmt.Errorf("panic while inspecting %q of type %T", key, r)}
		}
	}()
	for _, i := range all {
		switch err := i.Inspect(ctx, key, o); {
		case errors.Is(err, ErrUndecided), err != nil && ctx.Err() != nil:
			return lkg.Check{Outcome: lkg.CheckUndecided, Err: err}
		case err != nil:
			return lkg.Check{Outcome: lkg.CheckInvalid, Err: err}
		}
	}
	return lkg.Check{Outcome: lkg.CheckOK}
}

// recalled are proofs that give what they remember where they can, and ask nobody.
func recalled(all []Inspector, g lkg.Getter) []Inspector {
	out := make([]Inspector, 0, len(all))
	for _, p := range all {
		if r, ok := p.(interface {
			Recall(g lkg.Getter) Inspector
		}); ok {
			p = r.Recall(g)
		}
		out = append(out, p)
	}
	return out
}

// open reports whether a check is to be made again: nothing speaks for the object, and nothing against it.
func open(c lkg.Check) bool {
	return c.Outcome == lkg.CheckUnavailable || c.Outcome == lkg.CheckUndecided
}

// judged is check, and for a config that has not become the last known good one also what it would change there, and
// the proofs. So that verdict is the same before a config is adopted, at each start of its trial, and after it was
// refused and forgotten.
func (b *book[T]) judged(ctx context.Context, st *lkg.State, r lkg.Ref) lkg.Check {
	c := b.check(ctx, r)
	if c.Outcome != lkg.CheckOK || r.IsLocal() || !r.Same(st.Current.Ref) || r.Same(st.LastKnownGood) {
		return c
	}
	return b.novel(ctx, st, r, b.page(ctx, r))
}

// verdictKey names a way from one config to another.
type verdictKey struct{ from, to pageKey }

// novel judges a config that passed its own checks as a change. What is decided is remembered for the start.
func (b *book[T]) novel(ctx context.Context, st *lkg.State, r lkg.Ref, p page[T]) lkg.Check {
	o := b.s.o
	if o.Changes == nil && len(o.Proofs) == 0 {
		return p.check
	}
	from, before := b.before(ctx, st)
	way := verdictKey{keyOf(from), keyOf(r)}
	b.mu.Lock()
	c, ok := b.ways[way]
	b.mu.Unlock()
	if ok {
		return c
	}
	c = b.s.permit(before, p.text(b.s.keyFor(r.Key)))
	if c.Outcome == lkg.CheckOK {
		c = inspected(ctx, o.Proofs, b.s.keyFor(r.Key), p.obj)
	}
	if !open(c) {
		b.mu.Lock()
		b.ways[way] = c
		b.mu.Unlock()
	}
	return c
}

// permit asks the policy. A panic of it is an error of the config.
func (s *Syncer[T]) permit(from, to []byte) (c lkg.Check) {
	if s.o.Changes == nil {
		return lkg.Check{Outcome: lkg.CheckOK}
	}
	defer func() {
		if r := recover(); r != nil {
			c = lkg.Check{Outcome: lkg.CheckInvalid, Err: fmt.Errorf("panic of type %T while judging what the config changes", r)}
		}
	}()
	if _, err := s.o.Changes.Judge(from, to); err != nil {
		return lkg.Check{Outcome: lkg.CheckInvalid, Err: err}
	}
	return lkg.Check{Outcome: lkg.CheckOK}
}

// before gives the config that a change is measured against: the last known good one, or what would be used in its
// place.
func (b *book[T]) before(ctx context.Context, st *lkg.State) (lkg.Ref, []byte) {
	for _, r := range []lkg.Ref{st.LastKnownGood, st.Previous} {
		if r.IsLocal() {
			continue
		}
		if p := b.page(ctx, r); p.check.Outcome == lkg.CheckOK {
			return r, p.text(b.s.keyFor(r.Key))
		}
	}
	return lkg.Ref{}, b.page(ctx, lkg.Ref{}).text(b.s.o.Key)
}

// text is the entry that a config was decoded from; nothing for built-in defaults.
func (p page[T]) text(key string) []byte { return []byte(p.obj.Data[key]) }
