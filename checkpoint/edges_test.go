// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lateContext ends after it was asked so often, or, if it may, as soon as somebody waits for it.
type lateContext struct {
	context.Context
	left  int
	waits bool
}

func late(left int, waits bool) *lateContext { return &lateContext{context.Background(), left, waits} }

func (c *lateContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func (c *lateContext) Done() <-chan struct{} {
	if !c.waits {
		return nil
	}
	c.left = 0
	done := make(chan struct{})
	close(done)
	return done
}

// Wherever a context ends, the call says so, and nothing is half done; also while another call has the turn.
func TestContextsEndCallsEverywhere(t *testing.T) {
	for _, held := range []bool{false, true} {
		for left := range 8 {
			t.Run(fmt.Sprint(held, left), func(t *testing.T) { endedAt(t, left, held) })
		}
	}
}

func endedAt(t *testing.T, left int, held bool) {
	dir := memDir(t)
	s := openStore(t, dir, bare())
	mustPut(t, s, "d/a", "x")
	st, err := s.tree.findStream(t.Context(), name{dir: "d", base: "a"})
	check(t, err)
	if held {
		check(t, st.take(t.Context()))
		check(t, s.tree.takeTurn(t.Context()))
	}
	errs := map[string]error{
		"Put":                  s.Put(late(left, held), "d/a", []byte("y")),
		"Put in a new one":     s.Put(late(left, held), fmt.Sprint("new", left, "/a"), []byte("y")),
		"Delete":               s.Delete(late(left, held), "d/a"),
		"Put after the Delete": s.Put(late(left, held), "d/a", []byte("z")),
	}
	_, errs["List"] = s.List(late(left, held), "d")
	_, errs["Read"] = s.Read(late(left, held), "d/b")
	if held {
		s.tree.endTurn()
		st.release()
	}
	r := openReader(t, dir)
	mustPut(t, s, "d/c", "x")
	_, errs["Reader.Read"] = r.Read(late(left, held), "d/c")
	_, errs["Reader.List"] = r.List(late(left, held), "d")
	for call, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s with a context that ends: got %v, want the context's error or none", call, err)
		}
	}
	wantNoTemps(t, dir)
}

// A file that vanished is not waited for longer than the context lasts.
func TestWaitForAVanishedFileEndsWithTheContext(t *testing.T) {
	dir := memDir(t)
	s := openStore(t, dir, bare())
	mustPut(t, s, "a", "x")
	st, err := s.tree.findStream(t.Context(), name{base: "a"})
	check(t, err)
	check(t, st.take(t.Context()))
	check(t, os.Remove(place(dir, "a", 1)))
	_, err = s.Read(late(3, true), "a")
	wantError(t, "Read", err, context.Canceled)
	st.release()
	wantError(t, "a pause", pauseFor(late(0, true), 2), context.Canceled)
}

// A directory that could not be read is tried again by one caller at a time, as long as the context lasts.
func TestUnreadDirectoryIsTriedAgain(t *testing.T) {
	dir := memDir(t)
	s := openStore(t, dir, bare())
	mustPut(t, s, "d/a", "x")
	mustClose(t, s)
	spy := newSpy()
	spy.before = func(c call) error {
		if c.op == "opendir" && c.file == "d" {
			return unix.EIO
		}
		return nil
	}
	s = openSpied(t, spy, dir, bare())
	check(t, s.tree.takeTurn(t.Context()))
	_, err := s.List(late(1, true), "d")
	wantError(t, "List", err, context.Canceled)
	s.tree.endTurn()
	_, err = s.Read(t.Context(), "d/a")
	wantError(t, "Read", err, unix.EIO)
	_, err = s.List(t.Context(), "d")
	wantError(t, "List", err, unix.EIO)
	spy.before = nil
	wantRecord(t, s, "d/a", "x", 1)
	f, err := s.tree.enterFolder(t.Context(), "d")
	if err != nil || f != s.books.findFolder("d") {
		t.Fatalf("a directory that another call just took in: got %v, %v", f, err)
	}
}

// failOn fails one kind of call.
func failOn(op, file string, errno error) func(call) error {
	return func(c call) error {
		if c.op == op && strings.HasPrefix(c.file, file) {
			return errno
		}
		return nil
	}
}

// What is refused at Open is refused with a reason that can be told.
func TestOpenRefusesWhatItCanNotJudge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	replace(t, file, nil)
	_, err := Open(file, bare())
	if err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("Open of a file: got %v", err)
	}
	if _, err := OpenReader("", bare()); err == nil {
		t.Error("OpenReader of nothing: got no error")
	}
	for _, tt := range []struct {
		op, file string
		errno    error
		want     error
	}{
		{"openlock", lockFile, unix.EROFS, ErrReadOnly},
		{"list", "", unix.EIO, unix.EIO},
		{"kind", "", unix.EIO, unix.EIO},
	} {
		dir := t.TempDir()
		check(t, os.Chmod(dir, 0o755))
		spy := newSpy()
		spy.before = failOn(tt.op, tt.file, tt.errno)
		_, err := openOn(spy, dir, bare())
		wantError(t, "Open where "+tt.op+" fails", err, tt.want)
	}
	_, err = openOn(&unresolved{}, t.TempDir(), bare())
	wantError(t, "Open where the path can not be resolved", err, unix.EACCES)
	_, err = openOn(&replacing{}, t.TempDir(), bare())
	wantError(t, "Open while the lock file is replaced", err, ErrMoved)
}

type unresolved struct{ linuxFS }

func (*unresolved) resolve(string) (string, error) { return "", unix.EACCES }

// replacing puts another file in the place of the lock as soon as it is taken.
type replacing struct{ linuxFS }

func (r *replacing) statAt(dir int, name string) (fileInfo, error) {
	info, err := r.linuxFS.statAt(dir, name)
	if name == lockFile {
		info.id.ino++
	}
	return info, err
}

type noUnlock struct{ linuxFS }

func (*noUnlock) unlock(int) error { return unix.EIO }

func TestCloseSaysThatTheLockStays(t *testing.T) {
	s, err := openOn(&noUnlock{}, t.TempDir(), bare())
	check(t, err)
	wantError(t, "Close", s.Close(), unix.EIO)
}

// On a system where nothing was tested, Open and OpenReader say so.
func TestOtherSystemsAreRefused(t *testing.T) {
	_, err := openOn(nil, t.TempDir(), bare())
	wantError(t, "Open", err, errors.ErrUnsupported)
	_, err = openReaderOn(nil, t.TempDir(), bare())
	wantError(t, "OpenReader", err, errors.ErrUnsupported)
}

// A stream that was not confirmed, and can not be read at Open, stays as it is.
func TestUnreadableStreamIsNotConfirmed(t *testing.T) {
	dir := storeOf(t)
	replace(t, filepath.Join(dir, unsureFile("a")), nil)
	spy := newSpy()
	spy.before = failOn("read", "a.", unix.EIO)
	s := openSpied(t, spy, dir, bare())
	spy.before = nil
	wantRecord(t, s, "a", "payload 3", 3)
}

// Who holds the lock is for people: where it can not be read, it is not said.
func TestHolderMayBeUnknown(t *testing.T) {
	dir := t.TempDir()
	openStore(t, dir, bare())
	replace(t, filepath.Join(dir, lockFile), []byte("garbage"))
	var locked *lockedError
	if _, err := Open(dir, bare()); !errors.As(err, &locked) || locked.PID != 0 {
		t.Fatalf("Open: got %v, want a lockedError without a process", err)
	}
	spy := newSpy()
	spy.before = failOn("read", lockFile, unix.EIO)
	if _, err := openOn(spy, dir, bare()); !errors.As(err, &locked) || locked.PID != 0 {
		t.Fatalf("Open: got %v, want a lockedError without a process", err)
	}
}

func TestMachineIsReadFromItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machine-id")
	for content, known := range map[string]bool{"": false, "uninitialized\n": false, "0123\n": true} {
		replace(t, file, []byte(content))
		if got := (Options{}).machineOf(file) != none; got != known {
			t.Errorf("machine of %q: known = %t, want %t", content, got, known)
		}
	}
	if got := (Options{}).machineOf(file + ".not"); got != none {
		t.Errorf("machine without a file: got %q", got)
	}
}

// What the kernel does not know is done without.
func TestKernelWithoutTheNewerCalls(t *testing.T) {
	dir := t.TempDir()
	l := &linuxFS{}
	at, err := l.openPath(dir)
	check(t, err)
	defer func() { check(t, l.close(at)) }()
	check(t, l.mkdir(at, "d", permDir))
	replace(t, filepath.Join(dir, "file"), []byte("x"))
	if err := l.rename(at, "d", "d/below"); err == nil || !l.noRenameat2.Load() {
		t.Errorf("renaming a directory below itself: got %v, and the older call was not tried", err)
	}
	l.openat2 = func(int, string, *unix.OpenHow) (int, error) { return -1, unix.ENOSYS }
	fd, err := l.openAt(at, "file", openRead)
	check(t, err)
	check(t, l.close(fd))
	if !l.noOpenat2.Load() {
		t.Error("the newer call is tried again and again")
	}
	var pipe [2]int
	check(t, unix.Pipe(pipe[:]))
	check(t, l.hurry(pipe[1]))
	check(t, errors.Join(unix.Close(pipe[0]), unix.Close(pipe[1])))
	_, kind := l.kindOf(-1)
	_, room := l.room(-1)
	_, list := l.list(-1)
	for _, err := range []error{kind, room, list} {
		wantError(t, "a call on no descriptor", err, unix.EBADF)
	}
}

// A disk that fails in the middle of setting a file aside, taking it in, or deleting it.
func TestHousekeepingThatFails(t *testing.T) {
	for _, tt := range []struct{ op, file string }{{"rename", "a."}, {"statat", "a."}} {
		dir := storeOf(t)
		replace(t, place(dir, "a", 3), nil)
		spy := newSpy()
		spy.before = failOn(tt.op, tt.file, map[string]error{"rename": unix.EIO, "statat": unix.ENOENT}[tt.op])
		s := openSpied(t, spy, dir, bare())
		spy.before = nil
		if tt.op == "rename" {
			wantRecord(t, s, "a", "payload 2", 2)
		}
	}
	dir := storeOf(t)
	s := openStore(t, dir, bare())
	check(t, os.Remove(place(dir, "a", 3)))
	check(t, s.Delete(t.Context(), "a"))

	dir = storeOf(t)
	for gen := range uint64(3) {
		replace(t, place(dir, "a", gen+1), nil)
	}
	replace(t, filepath.Join(dir, unsureFile("a")), nil)
	spy := newSpy()
	s = openSpied(t, spy, dir, bare())
	spy.before = failOn("create", floorPrefix, unix.ENOSPC)
	check(t, s.Delete(t.Context(), "a"))
	if st := newFolder("", -1, fileID{}, spy).stream("x"); st != nil {
		if _, ok := st.drop(1); ok {
			t.Error("a generation that is not there was dropped")
		}
	}
}

// Damage that is told by its size.
func TestOversizedAndGrowingFilesAreDamage(t *testing.T) {
	dir := storeOf(t)
	check(t, os.Truncate(place(dir, "a", 3), defaultMaxStore+1))
	rec := wantRecord(t, openReader(t, dir), "a", "payload 2", 2)
	if len(rec.Damage) != 1 || rec.Damage[0].Reason != reasonOversize {
		t.Fatalf("damage: got %v, want oversize", rec.Damage)
	}
	r, err := openReaderOn(&growing{}, storeOf(t), bare())
	check(t, err)
	_, err = r.Read(t.Context(), "a")
	wantError(t, "Read of files that grow", err, ErrCorrupt)
}

// growing has files longer than they said.
type growing struct{ linuxFS }

func (*growing) readAt(_ int, p []byte, _ int64) (int, error) { return len(p), nil }

// A Reader on a disk that does not list, and one asked for what is no name.
func TestReaderSaysWhatItCanNotRead(t *testing.T) {
	dir := storeOf(t)
	spy := newSpy()
	r, err := openReaderOn(spy, dir, bare())
	check(t, err)
	spy.before = failOn("list", "", unix.EIO)
	_, read := r.Read(t.Context(), "a")
	_, list := r.List(t.Context(), "")
	wantError(t, "Read", read, unix.EIO)
	wantError(t, "List", list, unix.EIO)
	spy.before = failOn("opendir", "", unix.EIO)
	_, list = r.List(t.Context(), "d")
	wantError(t, "List", list, unix.EIO)
	spy.before = nil
	_, read = r.Read(t.Context(), "../a")
	_, list = r.List(t.Context(), "../a")
	wantError(t, "Read", read, ErrName)
	wantError(t, "List", list, ErrName)
}

// Processes that wait for one lock do not try in step, and look often enough to have a turn between two
// calls of another one.
func TestPausesBetweenTriesForALock(t *testing.T) {
	for try := range 100 {
		drawn := map[time.Duration]bool{}
		for range 8 {
			pause := pauseAfter(try)
			drawn[pause] = true
			if pause <= 0 || pause > 64*time.Millisecond {
				t.Errorf("after try %d: %v, want more than nothing and at most 64 ms", try, pause)
			}
		}
		if len(drawn) == 1 {
			t.Errorf("after try %d: the pause is always the same", try)
		}
	}
}

// Numbers end, and tries do.
func TestNothingGoesOnForEver(t *testing.T) {
	spy := newSpy()
	s := openSpied(t, spy, memDir(t), bare())
	mustPut(t, s, "a", "x")
	s.books.root.streams["a"].top = maxGeneration
	if err := s.Put(t.Context(), "a", []byte("y")); !errors.Is(err, ErrNotWritten) || !strings.Contains(err.Error(), "no generation") {
		t.Errorf("Put after the last number: got %v", err)
	}
	spy.before = failOn("sync", tempPrefix, unix.EIO)
	s.writer.pause = func(context.Context, int) error { return context.Canceled }
	err := s.Put(t.Context(), "b", []byte("y"))
	wantError(t, "Put", err, context.Canceled)
	wantError(t, "Put", err, unix.EIO)
}
