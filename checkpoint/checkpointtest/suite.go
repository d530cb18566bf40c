// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/belayproject/belay/checkpoint"
)

// Store is what the suite checks.
type Store interface {
	Put(ctx context.Context, stream string, payload []byte) error
	Get(ctx context.Context, stream string) ([]byte, error)
	Read(ctx context.Context, stream string) (checkpoint.Record, error)
	Delete(ctx context.Context, stream string) error
	List(ctx context.Context, dir string) ([]string, error)
	Close() error
}

// Place opens the store that lives in one place. The first call finds it empty. Each later call comes after a Close,
// and finds what was put: it is the restart of the process.
type Place func(t testing.TB) Store

// TestStore checks that the stores of newPlace keep the promises of checkpoint.Store, one subtest a rule. newPlace is
// called once for each, and the place must be gone when its test ends. The limit for payloads must be 4 MiB.
func TestStore(t *testing.T, newPlace func(t testing.TB) Place) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) { c.check(t, newPlace(t)) })
	}
}

// rule is one promise, and how to see that it is kept.
type rule struct {
	name string
	text string // what is promised: a part of every failure
	run  func(k *checker)
}

func (r rule) check(t testing.TB, place Place) {
	t.Helper()
	k := &checker{TB: t, rule: r.text, place: place}
	k.Store = place(t)
	defer func() {
		if err := k.Close(); err != nil {
			k.fail("Close: %v", err)
		}
	}()
	r.run(k)
}

// checker is a store under test, with checks that name the rule.
type checker struct {
	testing.TB
	Store
	rule  string
	place Place
}

func (k *checker) fail(format string, args ...any) {
	k.Helper()
	k.Fatalf(format+"\nthe rule: %s", append(args, k.rule)...)
}

// reopen is the restart of the process.
func (k *checker) reopen() {
	k.Helper()
	if err := k.Close(); err != nil {
		k.fail("Close: %v", err)
	}
	k.Store = k.place(k.TB)
}

func (k *checker) put(stream, payload string) {
	k.Helper()
	if err := k.Put(k.Context(), stream, []byte(payload)); err != nil {
		k.fail("Put(%q): got %v, want nil", stream, err)
	}
}

func (k *checker) delete(stream string) {
	k.Helper()
	if err := k.Delete(k.Context(), stream); err != nil {
		k.fail("Delete(%q): got %v, want nil", stream, err)
	}
}

// want checks that a stream has a payload, and returns its generation.
func (k *checker) want(stream, payload string) uint64 {
	k.Helper()
	got, err := k.Get(k.Context(), stream)
	if err != nil || string(got) != payload {
		k.fail("Get(%q): got %d bytes %.40q, error %v, want %d bytes %.40q", stream, len(got), got, err, len(payload), payload)
	}
	rec, err := k.Read(k.Context(), stream)
	if err != nil || string(rec.Payload) != payload || rec.Stream != stream {
		k.fail("Read(%q): got %d bytes of stream %q, error %v, want what Get returns", stream, len(rec.Payload), rec.Stream, err)
	}
	return rec.Generation
}

func (k *checker) wantAbsent(stream string) {
	k.Helper()
	if got, err := k.Get(k.Context(), stream); !errors.Is(err, fs.ErrNotExist) {
		k.fail("Get(%q): got %d bytes, error %v, want fs.ErrNotExist", stream, len(got), err)
	}
}

func (k *checker) wantList(dir string, want ...string) {
	k.Helper()
	got, err := k.List(k.Context(), dir)
	if err != nil || !slices.Equal(got, want) {
		k.fail("List(%q): got %q, error %v, want %q", dir, got, err, want)
	}
}
