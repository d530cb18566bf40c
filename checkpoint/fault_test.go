// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/raceshare"
)

// fault is one way in which system calls fail: the k-th one, or all from it on; before or after it was done.
type fault struct {
	errno   unix.Errno
	forever bool
	done    bool
}

func (f fault) String() string {
	return fmt.Sprintf("%s/forever=%t/done=%t", unix.ErrnoName(f.errno), f.forever, f.done)
}

func faults() []fault {
	var all []fault
	for _, e := range []unix.Errno{unix.EIO, unix.ENOSPC, unix.EROFS, unix.EMFILE, unix.EDQUOT, unix.EINTR, unix.EACCES} {
		all = append(all, fault{errno: e}, fault{errno: e, forever: true})
	}
	return append(all, fault{errno: unix.EIO, done: true}, fault{errno: unix.EIO, done: true, forever: true})
}

// trigger makes the hooks of a spy for the k-th call from now.
func (f fault) trigger(spy *spyFS, k int) (hit func() bool) {
	n := 0
	hook := func(call) error {
		n++
		if n-1 == k || f.forever && n > k {
			return f.errno
		}
		return nil
	}
	if f.done {
		spy.after = hook
	} else {
		spy.before = hook
	}
	return func() bool { return n > k }
}

// step is one write of the workload, and what the stream says when it is done; absent = "".
type step struct {
	stream, payload string
	remove          bool
}

func workload() []step {
	return []step{
		{stream: "a", payload: "a new"}, {stream: "a", payload: strings.Repeat("large", overlap/5+1)}, {stream: "d/b", payload: "b new"},
		{stream: "e/new", payload: "first of a directory"}, {stream: "c", remove: true}, {stream: "d/b", payload: "b newer"},
	}
}

// D5, E1, E9: every call fails, in every way. The old value stays readable, the error says what happened, an acknowledged write
// is there after reopening, and nothing half done is left.
// L-CS-04.
func TestEveryCallMayFail(t *testing.T) {
	for i, f := range faults() {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			step := raceshare.Step(t) // one goroutine works; the faults begin at different calls
			for k := i % step; ; k += step {
				if !failAt(t, f, k) {
					if k < 60 {
						t.Fatalf("only %d calls were made to fail, the workload has more", k)
					}
					return
				}
			}
		})
	}
}

// failAt runs the workload with one fault and reports whether the fault came to pass.
func failAt(t *testing.T, f fault, k int) bool {
	t.Helper()
	dir := memDir(t)
	state := prepare(t, dir)
	spy := newSpy()
	spy.dry = true
	hit := f.trigger(spy, k)
	s, err := openOn(spy, dir, Options{MachineID: "test machine", Ballast: 4096})
	if err == nil {
		s.writer.pause = func(ctx context.Context, _ int) error { return ctx.Err() }
		for _, st := range workload() {
			state[st.stream] = apply(t, s, st, state[st.stream], fmt.Sprintf("%s at call %d", f, k))
		}
		was := hit()
		spy.before, spy.after = nil, nil
		compare(t, s, state, fmt.Sprintf("%s at call %d, same process", f, k))
		mustClose(t, s)
		spy.before = func(call) error { return nil }
		if !was {
			return false
		}
	}
	s = openDry(t, dir)
	compare(t, s, state, fmt.Sprintf("%s at call %d, after reopening", f, k))
	wantNoTemps(t, dir)
	for stream := range state {
		mustPut(t, s, stream, "it works again")
		wantRecordOf(t, s, stream, "it works again")
	}
	mustClose(t, s)
	return true
}

func openDry(t *testing.T, dir string) *Store {
	spy := newSpy()
	spy.dry = true
	return openSpied(t, spy, dir, Options{MachineID: "test machine", Ballast: 4096})
}

// prepare makes the state before the workload: what each stream may say.
func prepare(t *testing.T, dir string) map[string][]string {
	t.Helper()
	s := openDry(t, dir)
	state := map[string][]string{"e/new": {""}}
	for _, stream := range []string{"a", "c", "d/b"} {
		for _, p := range []string{"oldest", "older", "old"} {
			mustPut(t, s, stream, stream+" "+p)
		}
		state[stream] = []string{stream + " old"}
	}
	mustClose(t, s)
	return state
}

// apply runs one step and returns what its stream may say from now on.
func apply(t *testing.T, s *Store, st step, was []string, when string) []string {
	t.Helper()
	var err error
	if st.remove {
		err = s.Delete(t.Context(), st.stream)
	} else {
		err = s.Put(t.Context(), st.stream, []byte(st.payload))
	}
	unwritten, unsure := errors.Is(err, ErrNotWritten), errors.Is(err, ErrIndeterminate)
	switch {
	case err == nil:
		return []string{st.payload}
	case unwritten == unsure:
		t.Fatalf("%s: error of %q: got %v, want one that matches one of ErrNotWritten and ErrIndeterminate", when, st.stream, err)
	case unsure:
		return append(slices.Clone(was), st.payload)
	}
	for errno, want := range map[unix.Errno]error{unix.ENOSPC: ErrFull, unix.EDQUOT: ErrFull, unix.EROFS: ErrReadOnly} {
		if errors.Is(err, errno) && !errors.Is(err, want) {
			t.Fatalf("%s: error of %q: got %v, want one that matches %q", when, st.stream, err, want)
		}
	}
	return was
}

func compare(t *testing.T, s *Store, state map[string][]string, when string) {
	t.Helper()
	for stream, may := range state {
		got, err := s.Get(t.Context(), stream)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && len(got) == 0 {
			t.Fatalf("%s: Get(%q): got %q, %v, want one of %q", when, stream, got, err, may)
		}
		if !slices.Contains(may, string(got)) {
			t.Fatalf("%s: Get(%q): got %.20q (error %v), want one of %.20q", when, stream, got, err, may)
		}
	}
}

func wantRecordOf(t *testing.T, s *Store, stream, payload string) {
	t.Helper()
	rec, err := s.Read(t.Context(), stream)
	if err != nil || string(rec.Payload) != payload || len(rec.Damage) != 0 {
		t.Fatalf("Read(%q): got %q, damage %v, error %v, want %q", stream, rec.Payload, rec.Damage, err, payload)
	}
}
