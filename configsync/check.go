// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

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
	if v := inspected(ctx, c.inspectors, key, obj); v.Outcome != lkg.CheckOK {
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

// decodeConfig decodes and validates an object. A panic of a codec or validator is an error of the config that caused it.
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
