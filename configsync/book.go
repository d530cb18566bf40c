// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"sync"

	"github.com/belayproject/belay/lkg"
)

// A book holds what was loaded for one start, so that no config is decoded twice and what was judged is what is used.
type book[T any] struct {
	checker *checker[T]
	mu      sync.Mutex
	seen    map[pageKey]page[T]
	ways    map[verdictKey]lkg.Check // of configs that passed their own checks
}

// pageKey is the identity of a Ref.
type pageKey struct{ uid, key, digest string }

// page is one config, loaded and judged.
type page[T any] struct {
	cfg    T
	obj    Object
	limits lkg.Limits
	check  lkg.Check
}

// text is the entry that a config was decoded from; nothing for built-in defaults.
func (p page[T]) text(key string) []byte { return []byte(p.obj.Data[key]) }

func newBook[T any](c *checker[T]) *book[T] {
	return &book[T]{checker: c, seen: map[pageKey]page[T]{}, ways: map[verdictKey]lkg.Check{}}
}

func keyOf(r lkg.Ref) pageKey { return pageKey{r.UID, r.Key, r.Digest} }

// check loads and judges a config. The local one is the zero Ref. What is unavailable is looked for again each time.
func (b *book[T]) check(ctx context.Context, r lkg.Ref) lkg.Check {
	return b.page(ctx, r).check
}

func (b *book[T]) page(ctx context.Context, r lkg.Ref) page[T] {
	b.mu.Lock()
	p, ok := b.seen[keyOf(r)]
	b.mu.Unlock()
	if ok {
		return p
	}
	if r.IsLocal() {
		p = b.checker.checkLocal(ctx)
	} else {
		p = b.checker.checkStored(ctx, r)
	}
	if !open(p.check) {
		b.enter(r, p)
	}
	return p
}

// enter keeps what was judged outside the book.
func (b *book[T]) enter(r lkg.Ref, p page[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen[keyOf(r)] = p
}

// limits are those of a config that was checked, within the operator's bounds.
func (b *book[T]) limits(r lkg.Ref) lkg.Limits {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen[keyOf(r)].limits
}

// active is what a verdict means to the caller.
func (b *book[T]) active(v lkg.Verdict) Active[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.seen[keyOf(v.Use)]
	return Active[T]{Config: p.cfg, Object: p.obj, Key: b.checker.keyFor(v.Use.Key), Ref: v.Use, Verdict: v}
}

// perBinary is a proof whose answers depend on a program of the node, such as the installed kubelet.
type perBinary interface{ ForEachBinary() bool }

// judgeAgain asks the proofs that depend on the node's program about the configs that are no longer on trial, before
// the program is started: it may have been replaced. A refusal holds for this start. A proof that is undecided says
// nothing: a good config is not left for that.
func (b *book[T]) judgeAgain(ctx context.Context, st *lkg.State) {
	var asked []Inspector
	for _, p := range b.checker.proofs {
		if own, ok := p.(perBinary); ok && own.ForEachBinary() {
			asked = append(asked, p)
		}
	}
	if len(asked) == 0 {
		return
	}
	for _, r := range []lkg.Ref{st.LastKnownGood, st.Previous} {
		p := page[T]{}
		if !r.IsLocal() {
			p = b.page(ctx, r)
		}
		if p.obj.Data == nil || p.check.Outcome != lkg.CheckOK {
			continue
		}
		if c := inspected(ctx, asked, b.checker.keyFor(r.Key), p.obj); c.Outcome == lkg.CheckInvalid {
			p.check = c
			b.enter(r, p)
		}
	}
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
	k := b.checker
	if k.changes == nil && len(k.proofs) == 0 {
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
	c = k.checkChange(before, p.text(k.keyFor(r.Key)))
	if c.Outcome == lkg.CheckOK {
		c = inspected(ctx, k.proofs, k.keyFor(r.Key), p.obj)
	}
	if !open(c) {
		b.mu.Lock()
		b.ways[way] = c
		b.mu.Unlock()
	}
	return c
}

// before gives the config that a change is measured against: the last known good one, or what would be used in its
// place.
func (b *book[T]) before(ctx context.Context, st *lkg.State) (lkg.Ref, []byte) {
	for _, r := range []lkg.Ref{st.LastKnownGood, st.Previous} {
		if r.IsLocal() {
			continue
		}
		if p := b.page(ctx, r); p.check.Outcome == lkg.CheckOK {
			return r, p.text(b.checker.keyFor(r.Key))
		}
	}
	return lkg.Ref{}, b.page(ctx, lkg.Ref{}).text(b.checker.key)
}
