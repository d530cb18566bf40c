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

// inspectObject turns the answer of an Inspector into that of a check. A panic of an Inspector is an error of the
// object.
func inspectObject(ctx context.Context, all []Inspector, key string, o Object) (c lkg.Check) {
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

// recallProofs replaces each proof that can by one that gives what it remembers and runs nothing.
func recallProofs(all []Inspector, g lkg.Getter) []Inspector {
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

// A checker judges configs: whether an object is what its inspectors, its codec and its validators take, and whether
// the change to it is permitted. It keeps nothing of what it judges; a [book] does.
type checker[T any] struct {
	key        string // the entry of an object that holds the config where a Spec names none
	codec      Codec[T]
	validators []Validator[T]
	inspectors []Inspector
	proofs     []Inspector
	changes    ChangePolicy
	init       func(context.Context) (Object, error)
	local      func() T // the built-in config
	bounds     lkg.Bounds
	objects    objectStore
}

func newChecker[T any](o *Options[T]) *checker[T] {
	return &checker[T]{
		key: o.Key, codec: o.Codec, validators: o.Validators, inspectors: o.Inspectors, proofs: o.Proofs,
		changes: o.Changes, init: o.Init, local: o.Default, bounds: o.Bounds, objects: objectStore{o.Store},
	}
}

// keyFor is the entry of an object that holds the config: the usual one where a Spec names none.
func (c *checker[T]) keyFor(key string) string {
	if key == "" {
		return c.key
	}
	return key
}

// checkStored loads the checkpoint of r and judges it.
func (c *checker[T]) checkStored(ctx context.Context, r lkg.Ref) page[T] {
	obj, err := c.objects.load(ctx, r)
	if err != nil {
		return page[T]{check: lkg.Check{Outcome: lkg.CheckUnavailable, Err: err}}
	}
	return c.checkObject(ctx, c.keyFor(r.Key), obj)
}

// checkObject judges an object of the source: first as it is, then what it holds.
func (c *checker[T]) checkObject(ctx context.Context, key string, obj Object) page[T] {
	if v := inspectObject(ctx, c.inspectors, key, obj); v.Outcome != lkg.CheckOK {
		return page[T]{obj: obj, check: v}
	}
	return c.decodeConfig(ctx, key, obj)
}

// checkLocal reads, decodes and judges the init config or, where there is none, the built-in defaults.
func (c *checker[T]) checkLocal(ctx context.Context) (p page[T]) {
	defer func() {
		if r := recover(); r != nil {
			p = page[T]{check: lkg.Check{Outcome: lkg.CheckInvalid, Err: fmt.Errorf("panic of type %T while judging the local config", r)}}
		}
	}()
	if c.init != nil {
		obj, err := c.init(ctx)
		if err == nil {
			p := c.decodeConfig(ctx, c.key, obj)
			p.check.Origin = lkg.OriginInit
			return p
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return page[T]{check: lkg.Check{Outcome: lkg.CheckUndecodable, Err: err, Origin: lkg.OriginInit}}
		}
		if c.local == nil {
			err = fmt.Errorf("no init config and no built-in default: %w", err)
			return page[T]{check: lkg.Check{Outcome: lkg.CheckUndecodable, Err: err, Origin: lkg.OriginInit}}
		}
	}
	p = page[T]{cfg: c.local(), check: lkg.Check{Outcome: lkg.CheckOK, Origin: lkg.OriginDefault}}
	if err := c.validate(ctx, p.cfg); err != nil {
		p.check.Outcome, p.check.Err = lkg.CheckInvalid, err
	}
	return p
}

// decodeConfig decodes and validates an object. A panic of a codec or validator is an error of the config that caused
// it.
func (c *checker[T]) decodeConfig(ctx context.Context, key string, obj Object) (p page[T]) {
	defer func() {
		if r := recover(); r != nil {
			p = page[T]{check: lkg.Check{Outcome: lkg.CheckUndecodable, Err: fmt.Errorf("panic while judging %q of type %T", key, r)}}
		}
	}()
	cfg, limits, err := c.codec.Decode(key, obj)
	if err != nil {
		return page[T]{obj: obj, check: lkg.Check{Outcome: lkg.CheckUndecodable, Err: err}}
	}
	if err := limits.Validate(); err != nil {
		return page[T]{obj: obj, check: lkg.Check{Outcome: lkg.CheckInvalid, Err: err}}
	}
	p = page[T]{cfg: cfg, obj: obj, limits: c.bounds.Clamp(limits), check: lkg.Check{Outcome: lkg.CheckOK}}
	if err := c.validate(ctx, cfg); err != nil {
		p.check = lkg.Check{Outcome: lkg.CheckInvalid, Err: err}
	}
	return p
}

func (c *checker[T]) validate(ctx context.Context, cfg T) error {
	for _, v := range c.validators {
		if err := v.Validate(ctx, cfg); err != nil {
			return err
		}
	}
	return nil
}

// checkChange asks the policy about the way from one config to another. A panic of it is an error of the config.
func (c *checker[T]) checkChange(from, to []byte) (v lkg.Check) {
	if c.changes == nil {
		return lkg.Check{Outcome: lkg.CheckOK}
	}
	defer func() {
		if r := recover(); r != nil {
			v = lkg.Check{Outcome: lkg.CheckInvalid, Err: fmt.Errorf("panic of type %T while judging what the config changes", r)}
		}
	}()
	if _, err := c.changes.Judge(from, to); err != nil {
		return lkg.Check{Outcome: lkg.CheckInvalid, Err: err}
	}
	return lkg.Check{Outcome: lkg.CheckOK}
}

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
		b.keepPage(r, p)
	}
	return p
}

// keepPage keeps what was judged outside the book.
func (b *book[T]) keepPage(r lkg.Ref, p page[T]) {
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
		if c := inspectObject(ctx, asked, b.checker.keyFor(r.Key), p.obj); c.Outcome == lkg.CheckInvalid {
			p.check = c
			b.keepPage(r, p)
		}
	}
}

// judgeConfig is check, and for a config that has not become the last known good one also what it would change there,
// and the proofs. So that verdict is the same before a config is adopted, at each start of its trial, and after it
// was refused and forgotten.
func (b *book[T]) judgeConfig(ctx context.Context, st *lkg.State, r lkg.Ref) lkg.Check {
	c := b.check(ctx, r)
	if c.Outcome != lkg.CheckOK || r.IsLocal() || !r.Same(st.Current.Ref) || r.Same(st.LastKnownGood) {
		return c
	}
	return b.judgeChange(ctx, st, r, b.page(ctx, r))
}

// verdictKey names a way from one config to another.
type verdictKey struct{ from, to pageKey }

// judgeChange judges a config that passed its own checks as a change. What is decided is remembered for the start.
func (b *book[T]) judgeChange(ctx context.Context, st *lkg.State, r lkg.Ref, p page[T]) lkg.Check {
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
		c = inspectObject(ctx, k.proofs, k.keyFor(r.Key), p.obj)
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
