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
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A2, E3: beside a busy writer that drops old files all the time, a Reader sees whole records only, and never goes back.
func TestReaderBesideAWriterSeesWholeRecordsInOrder(t *testing.T) {
	dir := memDir(t)
	spy := newSpy()
	spy.dry = true // no fsync: as many Puts as can be
	s := openSpied(t, spy, dir, bare())
	const puts = 1500
	check(t, s.Put(t.Context(), "d/a", numbered(1)))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	reads := make([]int, 3)
	for i := range reads {
		wg.Go(func() { reads[i] = readOn(t, openReader(t, dir), stop) })
	}
	for n := 2; n <= puts; n++ {
		if err := s.Put(t.Context(), "d/a", numbered(n)); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	wg.Wait()
	for _, n := range reads {
		if n < 3 {
			t.Fatalf("reads beside %d Puts: %v, too few to show anything", puts, reads)
		}
	}
	wantRecord(t, openReader(t, dir), "d/a", string(numbered(puts)), puts)
}

func readOn(t *testing.T, r *Reader, stop <-chan struct{}) (reads int) {
	for last := uint64(0); ; reads++ {
		select {
		case <-stop:
			return reads
		default:
		}
		rec, err := r.Read(context.Background(), "d/a")
		switch {
		case err != nil:
			t.Errorf("Read: %v", err)
			return reads
		case string(rec.Payload) != string(numbered(int(rec.Generation))) || len(rec.Damage) != 0:
			t.Errorf("generation %d is not what was put, damage %v", rec.Generation, rec.Damage)
			return reads
		case rec.Generation < last:
			t.Errorf("generation %d after %d", rec.Generation, last)
			return reads
		}
		last = rec.Generation
	}
}

// A Reader may come upon the middle of anything: it leaves all files as they are.
func TestReaderChangesNothing(t *testing.T) {
	dir := storeOf(t)
	replace(t, place(dir, "a", 3), nil)
	replace(t, filepath.Join(dir, tempPrefix+"1"), []byte("half"))
	replace(t, filepath.Join(dir, unsureFile("a")), nil)
	before := files(t, dir)
	r := openReader(t, dir)
	if rec := wantRecord(t, r, "a", "payload 2", 2); len(rec.Damage) != 1 || rec.Damage[0].Reason != reasonEmpty {
		t.Fatalf("Record.Damage: got %v, want generation 3 empty", rec.Damage)
	}
	names, err := r.List(t.Context(), "")
	if err != nil || !slices.Equal(names, []string{"a"}) {
		t.Fatalf("List: got %q, %v, want a", names, err)
	}
	if after := files(t, dir); !slices.Equal(before, after) {
		t.Fatalf("files: got %q, had %q", after, before)
	}
	for _, stream := range []string{"b", "d/a"} {
		_, err := r.Get(t.Context(), stream)
		wantError(t, "Get of an absent stream", err, fs.ErrNotExist)
	}
	if names, err := r.List(t.Context(), "d"); err != nil || len(names) != 0 {
		t.Fatalf("List of an absent directory: got %q, %v, want none", names, err)
	}
	_, err = OpenReader(filepath.Join(dir, "none"), bare())
	wantError(t, "OpenReader of an absent directory", err, fs.ErrNotExist)
}

// A file that goes away while it is looked for is looked for again; a directory that never holds still is an error.
func TestReaderTriesAgainWhenFilesVanish(t *testing.T) {
	dir := storeOf(t)
	for _, times := range []int{1, 5, readerTries + 1} {
		spy := newSpy()
		left := times
		spy.before = func(c call) error {
			if c.op == "open" && left > 0 {
				left--
				return unix.ENOENT
			}
			return nil
		}
		r, err := openReaderOn(spy, dir, bare())
		check(t, err)
		if times <= readerTries {
			wantRecord(t, r, "a", "payload 3", 3)
			continue
		}
		if _, err := r.Read(t.Context(), "a"); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("a directory that always changes: got %v, want an error that is not fs.ErrNotExist", err)
		}
	}
}

// EIO on reading is tried once more, and then it is neither absence nor damage of the file.
func TestUnreadableFileIsTriedTwiceAndStaysInPlace(t *testing.T) {
	for _, failures := range []int{1, 2} {
		dir := storeOf(t)
		spy := newSpy()
		s := openSpied(t, spy, dir, bare())
		left := failures
		spy.before = func(c call) error {
			if c.op == "read" && c.file == "a.0000000000000003" && left > 0 {
				left--
				return unix.EIO
			}
			return nil
		}
		if failures == 1 {
			wantRecord(t, s, "a", "payload 3", 3)
			continue
		}
		rec := wantRecord(t, s, "a", "payload 2", 2)
		if len(rec.Damage) != 1 || rec.Damage[0].Reason != reasonUnreadable {
			t.Fatalf("Record.Damage: got %v, want one unreadable file", rec.Damage)
		}
		if d := &rec.Damage[0]; !errors.Is(d, unix.EIO) || errors.Is(d, ErrCorrupt) {
			t.Fatalf("Record.Damage: got %v, want EIO and not ErrCorrupt", d)
		}
		wantFiles(t, dir, "a.0000000000000001", "a.0000000000000002", "a.0000000000000003")
		wantRecord(t, s, "a", "payload 3", 3) // it recovers by itself
	}
}

// A known file that someone removed is damage, not absence.
func TestRemovedFileIsReported(t *testing.T) {
	dir := storeOf(t)
	s := openStore(t, dir, bare())
	check(t, unix.Unlink(place(dir, "a", 3)))
	if rec := wantRecord(t, s, "a", "payload 2", 2); len(rec.Damage) != 1 || rec.Damage[0].Reason != reasonMissing {
		t.Fatalf("Record.Damage: got %v, want generation 3 missing", rec.Damage)
	}
	mustPut(t, s, "a", "next")
	wantRecord(t, s, "a", "next", 4)
}

// Reads and writes from many goroutines, with Deletes in between: each Get is whole or absent, never damaged.
func TestStoreIsSafeForConcurrentUse(t *testing.T) {
	spy := newSpy()
	spy.dry = true
	s := openSpied(t, spy, memDir(t), bare())
	ctx := t.Context()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 200 {
				stream := fmt.Sprint("d", i%2, "/s", i%3)
				var err error
				if i%20 == 19 {
					err = s.Delete(ctx, stream)
				} else {
					err = s.Put(ctx, stream, numbered(w*1000+i))
				}
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
		wg.Go(func() {
			for i := range 600 {
				rec, err := s.Read(ctx, fmt.Sprint("d", i%2, "/s", i%3))
				if err != nil && !errors.Is(err, fs.ErrNotExist) || len(rec.Damage) != 0 {
					t.Errorf("Read: %v, damage %v", err, rec.Damage)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestCloseWaitsAndEnds(t *testing.T) {
	spy := newSpy()
	s := openSpied(t, spy, t.TempDir(), bare())
	reached, release := make(chan struct{}), make(chan struct{})
	spy.before = func(c call) error {
		if c.op == "write" {
			close(reached)
			<-release
		}
		return nil
	}
	put := make(chan error)
	go func() { put <- s.Put(context.Background(), "a", []byte("x")) }()
	<-reached
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Put(ctx, "a", []byte("y")); !errors.Is(err, context.Canceled) && !errors.Is(err, fs.ErrClosed) {
		t.Fatalf("Put while closing: got %v", err)
	}
	select {
	case <-closed:
		t.Fatal("Close returned while a Put was under way")
	default:
	}
	close(release)
	check(t, <-put)
	check(t, <-closed)
	_, err := s.Get(t.Context(), "a")
	wantError(t, "Get after Close", err, fs.ErrClosed)
	wantError(t, "Put after Close", s.Put(t.Context(), "a", nil), fs.ErrClosed)
	check(t, s.Close())
}

// A Put that waits for its turn ends with its context, and writes nothing.
func TestWaitingPutEndsWithItsContext(t *testing.T) {
	spy := newSpy()
	s := openSpied(t, spy, t.TempDir(), bare())
	reached, release := make(chan struct{}), make(chan struct{})
	spy.before = func(c call) error {
		if c.op == "write" {
			close(reached)
			<-release
		}
		return nil
	}
	put := make(chan error)
	go func() { put <- s.Put(context.Background(), "a", []byte("x")) }()
	<-reached
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error)
	go func() { waiting <- s.Put(ctx, "a", []byte("y")) }()
	cancel()
	err := <-waiting
	wantError(t, "Put", err, context.Canceled)
	wantError(t, "Put", err, ErrNotWritten)
	close(release)
	check(t, <-put)
	wantRecord(t, s, "a", "x", 1)
}
