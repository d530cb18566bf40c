// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// failing fails the fsyncs of temporary files, or of directories, as long as there are any left.
func failing(files bool, times int) func(call) error {
	return func(c call) error {
		if c.op != "sync" || strings.HasPrefix(c.file, tempPrefix) != files || times == 0 {
			return nil
		}
		times--
		return unix.EIO
	}
}

// D6: the system reports an fsync error once. So the same file is never fsynced twice: a new one is written.
func TestFailedFsyncIsAnsweredByANewFile(t *testing.T) {
	for times := range 5 {
		t.Run(fmt.Sprint(times, " failures"), func(t *testing.T) {
			spy := newSpy()
			dir := t.TempDir()
			s := openSpied(t, spy, dir, bare())
			mustPut(t, s, "a", "old")
			spy.reset()
			spy.before = failing(true, times)
			err := s.Put(t.Context(), "a", []byte("new"))
			seen := map[string]bool{}
			for _, c := range spy.calls {
				if c.op == "sync" && strings.HasPrefix(c.file, tempPrefix) {
					if seen[c.file] {
						t.Fatalf("file %q was fsynced twice", c.file)
					}
					seen[c.file] = true
				}
			}
			if want := min(times+1, tries); len(seen) != want {
				t.Fatalf("files written: got %d, want %d", len(seen), want)
			}
			wantNoTemps(t, dir)
			if times < tries {
				check(t, err)
				wantRecord(t, s, "a", "new", 2)
				return
			}
			wantError(t, "Put", err, ErrNotWritten)
			wantError(t, "Put", err, unix.EIO)
			wantRecord(t, s, "a", "old", 1)
			spy.before = nil
			mustPut(t, s, "a", "new")
		})
	}
}

// D6: a directory fsync that failed is not repeated on its descriptor, and nothing counts as written by being seen: the next
// Put of the same payload writes a fresh generation.
func TestUnconfirmedWriteIsWrittenAgain(t *testing.T) {
	spy := newSpy()
	dir := t.TempDir()
	s := openSpied(t, spy, dir, bare())
	mustPut(t, s, "a", "old")
	spy.before = failing(false, 1)
	err := s.Put(t.Context(), "a", []byte("new"))
	wantError(t, "Put", err, ErrIndeterminate)
	if got := spy.script(); !slices.Contains(got[len(got)-4:], "close .") {
		t.Fatalf("the descriptor that failed was not closed: calls are %q", got)
	}
	spy.before = nil
	spy.reset()
	mustPut(t, s, "a", "new")
	want := []string{
		"create TEMP", "chmod TEMP", "write TEMP", "sync TEMP", "close TEMP", "rename TEMP a.0000000000000003", "opendir .", "sync .",
		"unlink a.unsure",
	}
	if got := spy.script(); !slices.Equal(got, want) {
		t.Fatalf("calls of the same Put again:\ngot  %q\nwant %q", got, want)
	}
	wantRecord(t, s, "a", "new", 3)
	wantFiles(t, dir, "a.0000000000000001", "a.0000000000000002", "a.0000000000000003")
}

// The same, when the process ends in between: Open writes a fresh generation by itself, and tries until one succeeds.
func TestOpenConfirmsWhatWasNot(t *testing.T) {
	spy := newSpy()
	dir := t.TempDir()
	s := openSpied(t, spy, dir, bare())
	mustPut(t, s, "d/a", "old")
	spy.before = failing(false, 1)
	wantError(t, "Put", s.Put(t.Context(), "d/a", []byte("new")), ErrIndeterminate)
	spy.before = nil
	mustClose(t, s)
	sub := filepath.Join(dir, "d")
	wantFiles(t, sub, "a.0000000000000001", "a.0000000000000002", "a.unsure")

	broken := newSpy()
	broken.before = func(c call) error {
		if c.op == "sync" || c.op == "write" {
			return unix.EIO
		}
		return nil
	}
	s = openSpied(t, broken, dir, bare())
	wantRecord(t, s, "d/a", "new", 2)
	wantError(t, "Put", s.Put(t.Context(), "d/a", []byte("new")), ErrNotWritten)
	mustClose(t, s)

	s = openStore(t, dir, bare())
	wantRecord(t, s, "d/a", "new", 3)
	wantFiles(t, sub, "a.0000000000000001", "a.0000000000000002", "a.0000000000000003")
}

// Nothing that may be the only durable record is dropped to make room while a stream is unsure.
func TestUnsureStreamIsNotTrimmed(t *testing.T) {
	spy := newSpy()
	dir := t.TempDir()
	s := openSpied(t, spy, dir, bare())
	mustPut(t, s, "a", "acknowledged")
	spy.before = failing(false, 3)
	for i := range 3 {
		wantError(t, "Put", s.Put(t.Context(), "a", fmt.Append(nil, i)), ErrIndeterminate)
	}
	spy.before = func(c call) error {
		if c.op == "write" {
			return unix.ENOSPC
		}
		return nil
	}
	wantError(t, "Put", s.Put(t.Context(), "a", []byte("x")), ErrFull)
	wantAcknowledged(t, dir)
	mustClose(t, s)

	full := newSpy()
	full.before = spy.before
	s = openSpied(t, full, dir, bare()) // all three verify when they are read, from the cache
	wantError(t, "Put", s.Put(t.Context(), "a", []byte("x")), ErrFull)
	wantAcknowledged(t, dir)
}

func wantAcknowledged(t *testing.T, dir string) {
	t.Helper()
	if got := content(t, place(dir, "a", 1)); !strings.Contains(string(got), "acknowledged") {
		t.Fatal("the acknowledged record is gone")
	}
}

// A rename that failed with an error of the disk may still be on it: the old payload has to be written anew to be the newest.
func TestFailedRenameLeavesNothingForGranted(t *testing.T) {
	spy := newSpy()
	dir := t.TempDir()
	s := openSpied(t, spy, dir, bare())
	mustPut(t, s, "a", "old")
	spy.before = func(c call) error {
		if c.op == "rename" {
			return unix.EIO
		}
		return nil
	}
	wantError(t, "Put", s.Put(t.Context(), "a", []byte("new")), ErrIndeterminate)
	wantNoTemps(t, dir)
	spy.before = nil
	wantRecord(t, s, "a", "old", 1)
	mustPut(t, s, "a", "old")
	wantRecord(t, s, "a", "old", 3)
}

// What a killed Put had renamed and not fsynced is read by the next process: Open makes it durable first. Where it can not, no
// record counts as written.
func TestOpenMakesDurableWhatItReads(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, bare())
	mustPut(t, s, "a", "x")
	mustPut(t, s, "d/a", "x")
	mustClose(t, s)
	spy := newSpy()
	s = openSpied(t, spy, dir, bare())
	synced := 0
	for _, c := range spy.script() {
		if c == "sync ." {
			synced++
		}
	}
	if synced != 2 {
		t.Fatalf("directories with records that Open fsynced: got %d, want 2", synced)
	}
	mustClose(t, s)
	spy = newSpy()
	spy.before = func(c call) error {
		if c.op == "sync" && c.file == "." { // those with records
			return unix.EIO
		}
		return nil
	}
	s = openSpied(t, spy, dir, bare())
	spy.before = nil
	for _, stream := range []string{"a", "d/a"} {
		wantRecord(t, s, stream, "x", 1)
		mustPut(t, s, stream, "x")
		wantRecord(t, s, stream, "x", 2)
	}
}

// Delete is no different: unconfirmed, it is not taken for done.
func TestUnconfirmedDeleteIsDoneAgain(t *testing.T) {
	spy := newSpy()
	s := openSpied(t, spy, t.TempDir(), bare())
	mustPut(t, s, "a", "x")
	spy.before = failing(false, 1)
	wantError(t, "Delete", s.Delete(t.Context(), "a"), ErrIndeterminate)
	spy.before = nil
	spy.reset()
	check(t, s.Delete(t.Context(), "a"))
	if got := spy.count("sync"); got != 1 {
		t.Fatalf("Delete again: got %d fsyncs, want 1", got)
	}
	spy.reset()
	check(t, s.Delete(t.Context(), "a"))
	if got := spy.count("sync"); got != 0 {
		t.Fatalf("Delete of what is gone: got %d fsyncs, want none", got)
	}
	_, err := s.Get(t.Context(), "a")
	wantError(t, "Get", err, fs.ErrNotExist)
}

// Puts that wait for the same directory share its fsync, and each is covered by one that began after its rename.
func TestConcurrentPutsShareTheDirectoryFsync(t *testing.T) {
	spy := newSpy()
	dir := t.TempDir()
	s := openSpied(t, spy, dir, bare())
	const n = 16
	release, first := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var mu sync.Mutex
	renamed, syncs := 0, 0
	all := make(chan struct{})
	spy.after = func(c call) error {
		mu.Lock()
		defer mu.Unlock()
		if c.op == "rename" {
			if renamed++; renamed == n {
				close(all)
			}
		}
		return nil
	}
	spy.before = func(c call) error {
		if c.op == "sync" && c.file == "." {
			mu.Lock()
			syncs++
			mu.Unlock()
			once.Do(func() { close(first); <-release })
		}
		return nil
	}
	errs := make(chan error, n)
	put := func(i int) { errs <- s.Put(context.Background(), fmt.Sprint("s", i), []byte("x")) }
	go put(0)
	<-first // the first fsync has begun, and is held: what comes now is not covered by it
	for i := 1; i < n; i++ {
		go put(i)
	}
	<-all
	close(release)
	var err error
	for range n {
		err = errors.Join(err, <-errs)
	}
	check(t, err)
	if syncs < 2 || syncs > n/2 {
		t.Fatalf("%d Puts at once: got %d directory fsyncs, want 2 or few more", n, syncs)
	}
}

// Some file systems say only at close that there was no room: such a file is not acknowledged.
func TestFailedCloseIsNoSuccess(t *testing.T) {
	for errno, want := range map[unix.Errno]error{unix.EIO: ErrNotWritten, unix.ENOSPC: ErrFull, unix.EDQUOT: ErrFull} {
		spy := newSpy()
		dir := t.TempDir()
		s := openSpied(t, spy, dir, bare())
		mustPut(t, s, "a", "old")
		spy.before = func(c call) error {
			if c.op == "close" && strings.HasPrefix(c.file, tempPrefix) {
				return errno
			}
			return nil
		}
		wantError(t, "Put", s.Put(t.Context(), "a", []byte("new")), want)
		wantRecord(t, s, "a", "old", 1)
		wantFiles(t, dir, "a.0000000000000001")
	}
}
