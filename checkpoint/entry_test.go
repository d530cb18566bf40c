// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// syncFails fails the first fsync of one directory, as the system does: once, whatever is lost.
func syncFails(dir string) func(call) error {
	failed := false
	return func(c call) error {
		if c.op == "sync" && c.file == dir && !failed {
			failed = true
			return unix.EIO
		}
		return nil
	}
}

func syncsOf(spy *spyFS, dir string) int {
	n := 0
	for _, c := range spy.calls {
		if c.op == "sync" && c.file == dir {
			n++
		}
	}
	return n
}

// D6, for the entry of the store itself: it is not fsynced again in the hope of a success that would prove nothing.
func TestFailedFsyncOfTheParentIsNotRepeated(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "store")
	s := openStore(t, dir, bare())
	mustPut(t, s, "a", "old")
	mustClose(t, s)

	spy := newSpy()
	spy.before = syncFails(parent)
	s = openSpied(t, spy, dir, bare())
	wantRecord(t, s, "a", "old", 1)
	for _, stream := range []string{"a", "d/a"} {
		err := s.Put(t.Context(), stream, []byte("new"))
		wantError(t, "Put", err, ErrNotWritten)
		wantError(t, "Put", err, unix.EIO)
	}
	wantError(t, "Delete", s.Delete(t.Context(), "a"), unix.EIO)
	if got := syncsOf(spy, parent); got != 1 {
		t.Errorf("the directory above was fsynced %d times, want once", got)
	}
	wantFiles(t, dir, "a.0000000000000001")
	mustClose(t, s)

	s = openStore(t, dir, bare()) // the entry was durable before the first record
	mustPut(t, s, "a", "new")
	wantRecord(t, s, "a", "new", 2)
}

// Where the entry may never have been durable, because the Open that made it was killed or had the error itself, the next
// Open has to make a new one.
func TestEntryWhoseFsyncFailedIsMadeAnew(t *testing.T) {
	tests := map[string]struct {
		store   string   // in the test's directory
		left    []string // what an Open made that was killed
		failing string   // in the test's directory; what an Open that makes it opened by its name alone
		entry   string
	}{
		"made by the Open":                   {store: "store", failing: ".", entry: "store"},
		"left by a kill":                     {store: "store", left: []string{"store"}, failing: ".", entry: "store"},
		"above, made by the Open":            {store: "above/store", failing: ".", entry: "above"},
		"above, left by a kill":              {store: "above/store", left: []string{"above"}, failing: ".", entry: "above"},
		"below another, made by the Open":    {store: "above/store", failing: "above", entry: "above/store"},
		"below another, left by a kill":      {store: "above/store", left: []string{"above", "above/store"}, failing: "above", entry: "above/store"},
		"the last one, above left by a kill": {store: "above/store", left: []string{"above"}, failing: "above", entry: "above/store"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			for _, dir := range tt.left {
				check(t, os.Mkdir(filepath.Join(base, dir), permDir))
			}
			spy := newSpy()
			failed := false
			spy.before = func(c call) error {
				if c.op != "sync" || failed || c.file != filepath.Join(base, tt.failing) && c.file != tt.failing {
					return nil
				}
				failed = true
				return unix.EIO
			}
			_, err := openOn(spy, filepath.Join(base, tt.store), bare())
			wantError(t, "Open", err, unix.EIO)
			_, err = os.Stat(filepath.Join(base, tt.entry))
			wantError(t, "the entry that may not be durable", err, os.ErrNotExist)

			again := newSpy()
			s := openSpied(t, again, filepath.Join(base, tt.store), bare())
			if made := "mkdir " + filepath.Base(tt.entry); !slices.Contains(again.script(), made) {
				t.Errorf("calls of the next Open: got %q, want %q among them", again.script(), made)
			}
			mustPut(t, s, "a", "x")
		})
	}
}
