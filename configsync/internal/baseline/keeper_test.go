// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"errors"
	"io/fs"
	"testing"
)

// disk is a store in memory. With full, no record can be written.
type disk struct {
	records map[string][]byte
	full    bool
}

func (d *disk) Get(_ context.Context, stream string) ([]byte, error) {
	if payload, ok := d.records[stream]; ok {
		return payload, nil
	}
	return nil, fs.ErrNotExist
}

func (d *disk) Put(_ context.Context, stream string, payload []byte) error {
	if d.full {
		return errors.New("no space left")
	}
	d.records[stream] = payload
	return nil
}

// scale is a comparer that weighs.
type scale struct {
	weight string
	panics bool
	got    string
}

func (*scale) Name() string { return "scale" }

func (s *scale) Check(context.Context) error {
	s.got = "none"
	return nil
}

func (s *scale) TakeBaseline(context.Context) ([]byte, error) {
	if s.panics {
		panic("overload")
	}
	return []byte(s.weight), nil
}

func (s *scale) Compare(_ context.Context, baseline []byte, _ bool) error {
	s.got = string(baseline)
	return nil
}

// L-CS-34: a baseline is that of one trial, taken once during a run; a record that is damaged or was not written, and a
// probe that panics, leave none.
func TestBaselinesOfOneTrial(t *testing.T) {
	d, use := &disk{records: map[string][]byte{}}, Use{}
	s := &scale{weight: "1"}
	compare := func(keeper *Keeper, trial string) string {
		t.Helper()
		use = Use{Trial: trial}
		if err := (Compared{s, keeper}).Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s.got
	}
	open := func() *Keeper { return NewKeeper(d, func() Use { return use }) }
	take := func(keeper *Keeper, trial string) error {
		return keeper.TakeAll(t.Context(), trial, 1, []Comparer{s})
	}
	k := open()
	if err := errors.Join(take(k, ""), take(k, "a")); err != nil {
		t.Fatal(err)
	}
	s.weight = "2"
	if err := take(k, "a"); err != nil {
		t.Fatal(err)
	}
	if a, again, b := compare(k, "a"), compare(open(), "a"), compare(k, "b"); a != "1" || again != "1" || b != "none" {
		t.Errorf("compared with %q, after a restart %q, for another trial %q; want 1, 1 and none", a, again, b)
	}
	s.panics = true
	if err := take(k, "b"); err == nil {
		t.Error("the panic of a probe is no error")
	}
	s.panics = false
	if b := compare(k, "b"); b != "none" {
		t.Errorf("compared with %q after a panic, want none", b)
	}
	d.full = true
	if err := take(k, "c"); err == nil || compare(k, "c") != "none" {
		t.Errorf("TakeAll on a full disk = %v, compared with %q; want an error and none: it would be gone after a restart",
			err, s.got)
	}
	d.records[Stream] = []byte("{")
	if b := compare(open(), "b"); b != "none" {
		t.Errorf("compared with %q of a damaged record, want none", b)
	}
}

// L-CS-34: each run that ends with a restart gives a baseline of its own. One that can't be written is none, and
// neither is the one before.
func TestBaselinesAreTakenAnewInTheNextRun(t *testing.T) {
	d, s := &disk{records: map[string][]byte{}}, &scale{weight: "1"}
	open := func() *Keeper { return NewKeeper(d, func() Use { return Use{Trial: "a"} }) }
	k := open()
	compare := func(keeper *Keeper) string {
		t.Helper()
		if err := (Compared{s, keeper}).Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s.got
	}
	if err := k.TakeAll(t.Context(), "a", 1, []Comparer{s}); err != nil {
		t.Fatal(err)
	}
	s.weight = "2"
	if err := k.TakeAll(t.Context(), "a", 2, []Comparer{s}); err != nil {
		t.Fatal(err)
	}
	if a, again := compare(k), compare(open()); a != "2" || again != "2" {
		t.Errorf("compared with %q, after a restart %q, want 2", a, again)
	}
	d.full = true
	if err := k.TakeAll(t.Context(), "a", 3, []Comparer{s}); err == nil || compare(k) != "none" {
		t.Errorf("TakeAll on a full disk = %v, compared with %q; want an error and none", err, s.got)
	}
}
