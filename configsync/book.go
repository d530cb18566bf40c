// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/belayproject/belay/lkg"
)

// A book holds what was loaded for one start, so that no config is decoded twice and what was judged is what is used.
type book[T any] struct {
	s    *Syncer[T]
	mu   sync.Mutex
	seen map[pageKey]page[T]
	ways map[verdictKey]lkg.Check // of configs that passed their own checks
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

func newBook[T any](s *Syncer[T]) *book[T] {
	return &book[T]{s: s, seen: map[pageKey]page[T]{}, ways: map[verdictKey]lkg.Check{}}
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
		p = b.s.judgeLocal(ctx)
	} else {
		p = b.s.judgeStored(ctx, r)
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
	return Active[T]{Config: p.cfg, Object: p.obj, Key: b.s.keyFor(v.Use.Key), Ref: v.Use, Verdict: v}
}

func (s *Syncer[T]) keyFor(key string) string {
	if key == "" {
		return s.o.Key
	}
	return key
}

// judgeStored loads the checkpoint of r and judges it.
func (s *Syncer[T]) judgeStored(ctx context.Context, r lkg.Ref) page[T] {
	obj, err := s.load(ctx, r)
	if err != nil {
		return page[T]{check: lkg.Check{Outcome: lkg.CheckUnavailable, Err: err}}
	}
	return s.judgeRemote(ctx, s.keyFor(r.Key), obj)
}

// judgeRemote judges an object of the source: first as it is, then what it holds.
func (s *Syncer[T]) judgeRemote(ctx context.Context, key string, obj Object) page[T] {
	if c := inspected(ctx, s.o.Inspectors, key, obj); c.Outcome != lkg.CheckOK {
		return page[T]{obj: obj, check: c}
	}
	return s.judge(ctx, key, obj)
}

// judgeLocal reads, decodes and judges the init config or, where there is none, the built-in defaults.
func (s *Syncer[T]) judgeLocal(ctx context.Context) (p page[T]) {
	defer func() {
		if r := recover(); r != nil {
			p = page[T]{check: lkg.Check{Outcome: lkg.CheckInvalid, Err: fmt.Errorf("panic of type %T while judging the local config", r)}}
		}
	}()
	if s.o.Init != nil {
		obj, err := s.o.Init(ctx)
		if err == nil {
			p := s.judge(ctx, s.o.Key, obj)
			p.check.Origin = lkg.OriginInit
			return p
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return page[T]{check: lkg.Check{Outcome: lkg.CheckUndecodable, Err: err, Origin: lkg.OriginInit}}
		}
		if s.o.Default == nil {
			err = fmt.Errorf("no init config and no built-in default: %w", err)
			return page[T]{check: lkg.Check{Outcome: lkg.CheckUndecodable, Err: err, Origin: lkg.OriginInit}}
		}
	}
	p = page[T]{cfg: s.o.Default(), check: lkg.Check{Outcome: lkg.CheckOK, Origin: lkg.OriginDefault}}
	if err := s.validate(ctx, p.cfg); err != nil {
		p.check.Outcome, p.check.Err = lkg.CheckInvalid, err
	}
	return p
}

// judge decodes and validates an object. A panic of a codec or validator is an error of the config that caused it.
func (s *Syncer[T]) judge(ctx context.Context, key string, obj Object) (p page[T]) {
	defer func() {
		if r := recover(); r != nil {
			p = page[T]{check: lkg.Check{Outcome: lkg.CheckUndecodable, Err: fmt.Errorf("panic while judging %q of type %T", key, r)}}
		}
	}()
	cfg, limits, err := s.o.Codec.Decode(key, obj)
	if err != nil {
		return page[T]{obj: obj, check: lkg.Check{Outcome: lkg.CheckUndecodable, Err: err}}
	}
	if err := limits.Validate(); err != nil {
		return page[T]{obj: obj, check: lkg.Check{Outcome: lkg.CheckInvalid, Err: err}}
	}
	p = page[T]{cfg: cfg, obj: obj, limits: s.o.Bounds.Clamp(limits), check: lkg.Check{Outcome: lkg.CheckOK}}
	if err := s.validate(ctx, cfg); err != nil {
		p.check = lkg.Check{Outcome: lkg.CheckInvalid, Err: err}
	}
	return p
}

func (s *Syncer[T]) validate(ctx context.Context, cfg T) error {
	for _, v := range s.o.Validators {
		if err := v.Validate(ctx, cfg); err != nil {
			return err
		}
	}
	return nil
}

// perBinary is a proof whose answers depend on a program of the node, such as the installed kubelet.
type perBinary interface{ ForEachBinary() bool }

// judgeAgain asks the proofs that depend on the node's program about the configs that are no longer on trial, before
// the program is started: it may have been replaced. A refusal holds for this start. A proof that is undecided says
// nothing: a good config is not left for that.
func (b *book[T]) judgeAgain(ctx context.Context, st *lkg.State) {
	var asked []Inspector
	for _, p := range b.s.o.Proofs {
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
		if c := inspected(ctx, asked, b.s.keyFor(r.Key), p.obj); c.Outcome == lkg.CheckInvalid {
			p.check = c
			b.enter(r, p)
		}
	}
}
