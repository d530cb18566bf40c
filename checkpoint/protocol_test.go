// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// A1: the order of the calls is the promise. File fsync, close, rename, directory fsync, and only then the old one goes.
func TestPutKeepsTheOrderOfTheProtocol(t *testing.T) {
	spy := newSpy()
	s := openSpied(t, spy, t.TempDir(), bare())
	for i := range 4 {
		mustPut(t, s, "a", strings.Repeat("x", i))
	}
	spy.reset()
	mustPut(t, s, "a", "five")
	want := []string{
		"create TEMP", "chmod TEMP", "write TEMP", "sync TEMP", "close TEMP",
		"rename TEMP a.0000000000000005", "sync .", "unlink a.0000000000000002",
	}
	if got := spy.script(); !slices.Equal(got, want) {
		t.Fatalf("calls of a Put:\ngot  %q\nwant %q", got, want)
	}
}

// A large payload is on its way to the disk before its digest is made; the header is written last, and all of it before the
// one fsync of the file.
func TestLargePutOverlapsDigestAndDisk(t *testing.T) {
	spy := newSpy()
	s := openSpied(t, spy, t.TempDir(), bare())
	large := strings.Repeat("x", overlap)
	spy.reset()
	mustPut(t, s, "a", large)
	want := []string{
		"create TEMP", "chmod TEMP", "write TEMP", "hurry TEMP", "write TEMP", "sync TEMP", "close TEMP",
		"rename TEMP a.0000000000000001", "sync .",
	}
	if got := spy.script(); !slices.Equal(got, want) {
		t.Fatalf("calls of a large Put:\ngot  %q\nwant %q", got, want)
	}
	wantRecord(t, s, "a", large, 1)
	spy.reset()
	mustPut(t, s, "a", large)
	if got := spy.script(); len(got) != 0 {
		t.Fatalf("calls of an unchanged large Put: got %q, want none", got)
	}
	mustPut(t, s, "a", large[1:]+"y")
	wantRecord(t, s, "a", large[1:]+"y", 2)
}

// A system may take less than it was given: what is left is written after it.
func TestShortWritesAreContinued(t *testing.T) {
	for _, size := range []int{0, 5000, overlap} {
		s := openSpied(t, &shortFS{}, memDir(t), bare())
		payload := strings.Repeat("0123456789", size/10)
		mustPut(t, s, "a", payload)
		wantRecord(t, s, "a", payload, 1)
	}
}

// shortFS takes at most 999 bytes at once.
type shortFS struct{ linuxFS }

func (s *shortFS) writeAt(fd int, bufs [][]byte, off int64) (int, error) {
	first := bufs[0]
	return s.linuxFS.writeAt(fd, [][]byte{first[:min(len(first), 999)]}, off)
}

func TestPutCostsTwoFsyncsAndAnUnchangedOneNone(t *testing.T) {
	spy := newSpy()
	s := openSpied(t, spy, t.TempDir(), bare())
	seen := map[string]int{}
	for _, tt := range []struct {
		name, stream, payload string
		want                  int
	}{
		{"first", "a", "1", 2},
		{"changed", "a", "2", 2},
		{"unchanged", "a", "2", 0},
		{"back to the one before", "a", "1", 2},
		{"first of a new directory, whose entry has to be durable, too", "d/a", "1", 3},
		{"second stream of the directory", "d/b", "1", 2},
		{"unchanged in the directory", "d/a", "1", 0},
		{"empty payload", "a", "", 2},
		{"unchanged empty payload", "a", "", 0},
	} {
		spy.reset()
		mustPut(t, s, tt.stream, tt.payload)
		seen[tt.name] = spy.count("sync")
		if got := seen[tt.name]; got != tt.want {
			t.Errorf("%s: got %d fsyncs, want %d", tt.name, got, tt.want)
		}
		if tt.want == 0 && len(spy.script()) != 0 {
			t.Errorf("%s: got calls %q that change the disk, want none", tt.name, spy.script())
		}
	}
	t.Logf("fsyncs: %d a Put, %d an unchanged Put", seen["changed"], seen["unchanged"]) // the benchmark reads this line
}

// R-CS-34: what is stored already is not written again, also by the next process.
func TestUnchangedPutAfterReopeningWritesNothing(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, bare())
	mustPut(t, s, "checkpoints/uid", "object")
	mustClose(t, s)
	spy := newSpy()
	s = openSpied(t, spy, dir, bare())
	spy.reset()
	mustPut(t, s, "checkpoints/uid", "object")
	if got := spy.script(); len(got) != 0 {
		t.Fatalf("got calls %q, want none", got)
	}
}

func TestDirectoriesAreDurableBeforeTheyAreUsed(t *testing.T) {
	spy := newSpy()
	dir := filepath.Join(t.TempDir(), "one", "two", "store")
	s := openSpied(t, spy, dir, bare())
	mustPut(t, s, "sub/a", "x")
	script := spy.script()
	for _, name := range []string{"one", "two", "store", "sub"} {
		made := slices.Index(script, "mkdir "+name)
		if made < 0 || !strings.HasPrefix(script[made+1], "chmodat") {
			t.Fatalf("making %q: calls are %q, want mkdir and chmodat in a row", name, script)
		}
		synced := slices.IndexFunc(script[made:], func(c string) bool { return strings.HasPrefix(c, "sync") })
		next := slices.IndexFunc(script[made+1:], func(c string) bool {
			return strings.HasPrefix(c, "mkdir") || strings.HasPrefix(c, "create TEMP") || strings.HasPrefix(c, "openlock")
		})
		if synced < 0 || synced > next+1 {
			t.Errorf("directory %q was used before its parent was fsynced: %q", name, script)
		}
	}
}

func TestGenerationsAreKeptAndDropped(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, bare())
	for i := range 10 {
		mustPut(t, s, "a", fmt.Sprint(i))
	}
	wantFiles(t, dir, "a.0000000000000008", "a.0000000000000009", "a.000000000000000a")
	wantRecord(t, s, "a", "9", 10)
	mustClose(t, s)
	s = openStore(t, dir, bare())
	rec := wantRecord(t, s, "a", "9", 10)
	if want := digestOf([]byte("9")).String(); rec.Digest != want || rec.Writer != "v1.2.3" || rec.Stream != "a" || rec.Damage != nil {
		t.Fatalf("Read: got %+v, want digest %s, writer v1.2.3, no damage", rec, want)
	}
	if s.books.bytes.used != 3*int64(len(content(t, place(dir, "a", 10)))) {
		t.Fatalf("bytes in use: got %d, want three files of %d", s.books.bytes.used, len(content(t, place(dir, "a", 10))))
	}
}

// A3: next is the highest number ever named, and deletion does not make it forgotten.
func TestGenerationsAreNeverUsedTwice(t *testing.T) {
	dir := t.TempDir()
	for round := range 4 {
		s := openStore(t, dir, bare())
		mustPut(t, s, "d/a", fmt.Sprint("first ", round))
		wantRecord(t, s, "d/a", fmt.Sprint("first ", round), uint64(2*round+1))
		mustPut(t, s, "d/a", fmt.Sprint("second ", round))
		if err := s.Delete(t.Context(), "d/a"); err != nil {
			t.Fatal(err)
		}
		wantFiles(t, filepath.Join(dir, "d"), floorFile(uint64(2*round+2)))
		if size := len(content(t, filepath.Join(dir, "d", floorFile(uint64(2*round+2))))); size != 0 {
			t.Fatalf("the mark of a deleted record holds %d bytes of it", size)
		}
		mustClose(t, s)
	}
}

// The same where nothing whole is left to be deleted.
func TestGenerationsOfDamagedStreamsAreNotUsedAgain(t *testing.T) {
	dir := storeOf(t)
	for gen := range uint64(3) {
		replace(t, place(dir, "a", gen+1), nil)
	}
	s := openStore(t, dir, bare())
	check(t, s.Delete(t.Context(), "a"))
	wantFiles(t, dir, floorFile(3))
	mustClose(t, s)
	s = openStore(t, dir, bare())
	_, err := s.Get(t.Context(), "a")
	wantError(t, "Get of a deleted stream", err, fs.ErrNotExist)
	mustPut(t, s, "a", "new")
	wantRecord(t, s, "a", "new", 4)
}

// A crash in a Delete must not bring back an older record: only the newest is there at the end, durably.
func TestDeleteRemovesTheNewestLast(t *testing.T) {
	spy := newSpy()
	dir := t.TempDir()
	s := openSpied(t, spy, dir, bare())
	for i := range 3 {
		mustPut(t, s, "a", fmt.Sprint(i))
	}
	spy.reset()
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"unlink a.0000000000000002", "unlink a.0000000000000001", "sync .",
		"rename a.0000000000000003 .floor.0000000000000003", "sync .",
		"openwrite .floor.0000000000000003", "truncate .floor.0000000000000003", "close .floor.0000000000000003",
	}
	if got := spy.script(); !slices.Equal(got, want) {
		t.Fatalf("calls of a Delete:\ngot  %q\nwant %q", got, want)
	}
}

// Nothing is decided by the times of a file.
func TestFileTimesDecideNothing(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, bare())
	for i := range 3 {
		mustPut(t, s, "a", fmt.Sprint(i))
	}
	mustClose(t, s)
	now := time.Now()
	for gen, at := range map[uint64]time.Time{1: now.AddDate(10, 0, 0), 2: now, 3: time.Unix(0, 0)} {
		if err := os.Chtimes(place(dir, "a", gen), at, at); err != nil {
			t.Fatal(err)
		}
	}
	s = openStore(t, dir, bare())
	wantRecord(t, s, "a", "2", 3)
	mustPut(t, s, "a", "3")
	wantFiles(t, dir, "a.0000000000000002", "a.0000000000000003", "a.0000000000000004")
}

func TestPutAllocatesLittleAndCopiesNoPayload(t *testing.T) {
	s := openStore(t, t.TempDir(), bare())
	payload := bytes.Repeat([]byte("x"), 1<<20)
	i := 0
	var err error
	allocs := testing.AllocsPerRun(20, func() {
		i++
		payload[0] = byte(i)
		err = errors.Join(err, s.Put(t.Context(), "d/a", payload))
	})
	if err != nil {
		t.Fatal(err)
	}
	if allocs > 12 {
		t.Errorf("allocations of a Put: got %v, want at most 12", allocs)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const puts = 20
	for range puts {
		i++
		payload[0] = byte(i)
		check(t, s.Put(t.Context(), "d/a", payload))
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / puts; got > 64<<10 {
		t.Errorf("a Put of %d bytes allocates %d bytes: it copies the payload", len(payload), got)
	}
}

// Payloads with one quick checksum are told apart all the same.
func TestEqualChecksumIsNotEqualPayload(t *testing.T) {
	seen := map[uint32]string{}
	for i := uint64(0); ; i++ {
		p := string(binary.LittleEndian.AppendUint64(nil, i*0x9e3779b97f4a7c15))
		other, ok := seen[hintOf([]byte(p))]
		if !ok {
			seen[hintOf([]byte(p))] = p
			continue
		}
		s := openStore(t, t.TempDir(), bare())
		mustPut(t, s, "a", other)
		mustPut(t, s, "a", p)
		wantRecord(t, s, "a", p, 2)
		return
	}
}

// A name that is taken is never replaced: its number is given up.
func TestTakenNamesAreNotReplaced(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, bare())
	mustPut(t, s, "a", "x")
	replace(t, place(dir, "a", 2), []byte("in the way"))
	wantError(t, "Put onto a name that is taken", s.Put(t.Context(), "a", []byte("y")), ErrNotWritten)
	if got := string(content(t, place(dir, "a", 2))); got != "in the way" {
		t.Fatalf("the file in the way was replaced: %q", got)
	}
	mustPut(t, s, "a", "y")
	wantRecord(t, s, "a", "y", 3)
}

func TestOldKernelsAreServedByTheOlderCalls(t *testing.T) {
	old := &linuxFS{}
	old.noOpenat2.Store(true)
	old.noRenameat2.Store(true)
	dir := t.TempDir()
	s := openSpied(t, old, dir, bare())
	mustPut(t, s, "d/a", "x")
	mustPut(t, s, "d/a", "y")
	wantRecord(t, s, "d/a", "y", 2)
	replace(t, place(filepath.Join(dir, "d"), "a", 3), []byte("in the way"))
	err := s.Put(t.Context(), "d/a", []byte("z"))
	wantError(t, "Put onto a name that is taken", err, ErrNotWritten)
	if got := string(content(t, place(filepath.Join(dir, "d"), "a", 3))); got != "in the way" {
		t.Fatalf("the file in the way was replaced: %q", got)
	}
	mustPut(t, s, "d/a", "z")
	wantRecord(t, s, "d/a", "z", 4)
	if err := os.Symlink("a.0000000000000004", place(filepath.Join(dir, "d"), "a", 9)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	s = openSpied(t, old, dir, bare())
	if rec := wantRecord(t, s, "d/a", "z", 4); len(rec.Damage) != 1 || rec.Damage[0].Reason != reasonUntrusted {
		t.Fatalf("a planted link: got damage %v, want untrusted", rec.Damage)
	}
}

// Two streams of one directory, with the same number, are deleted at once: the record of one becomes the mark, and the other goes once that mark
// is durable. Neither Delete fails, and no number comes back.
func TestDeletesOfOneNumberMeet(t *testing.T) {
	dir := t.TempDir()
	spy := newSpy()
	s := openSpied(t, spy, dir, bare())
	mustPut(t, s, "d/a", "a")
	mustPut(t, s, "d/b", "b")
	met := false
	spy.after = func(c call) error {
		if c.op == "rename" && !met {
			met = true
			spy.reset()
			if err := s.Delete(t.Context(), "d/b"); err != nil {
				t.Errorf("a Delete that met another one: %v", err)
			}
			if got := spy.script(); len(got) < 3 || got[1] != "sync ." || !strings.HasPrefix(got[2], "unlink ") {
				t.Errorf("the other Delete made the calls %q, want the mark to be durable before the record goes", got)
			}
		}
		return nil
	}
	if err := s.Delete(t.Context(), "d/a"); err != nil {
		t.Errorf("the Delete that was met: %v", err)
	}
	if !met {
		t.Fatal("no record became the mark")
	}
	spy.after = nil
	for _, stream := range []string{"d/a", "d/b"} {
		mustPut(t, s, stream, "new")
		if rec, err := s.Read(t.Context(), stream); err != nil || rec.Generation < 2 {
			t.Errorf("%s: got generation %d, %v after a Delete of generation 1", stream, rec.Generation, err)
		}
	}
	mustClose(t, s)
}
