// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// R-CS-12: the directory holds all that there is. Copied elsewhere, on the same machine, it gives the same answers.
func TestStoreIsWholeInItsDirectory(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	s := openStore(t, dir, bare())
	streams := []string{"current", "last-known-good", "v1.2.3/bad-configs", "checkpoints/uid-1", "good/uid-1"}
	for i, n := range streams {
		mustPut(t, s, n, "old")
		mustPut(t, s, n, fmt.Sprint(i))
	}
	mustClose(t, s)
	check(t, os.CopyFS(other, os.DirFS(dir)))
	check(t, os.Chmod(other, 0o700))
	for _, d := range []string{"v1.2.3", "checkpoints", "good"} {
		check(t, filepath.WalkDir(filepath.Join(other, d), func(path string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				err = os.Chmod(path, 0o600)
			}
			return err
		}))
	}
	s = openStore(t, other, bare())
	for i, n := range streams {
		wantRecord(t, s, n, fmt.Sprint(i), 2)
	}
}

// R-CS-13, R-CS-14: an object lies under checkpoints/ by its UID, whole, byte for byte, between a header line and the end mark.
// L-CS-13.
func TestObjectLiesUnderItsUIDByteForByte(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, bare())
	object := `{"kind":"ConfigMap","metadata":{"uid":"0f2a4c7e-3d1b","labels":{"a":"\u00e4"}},"data":{"kubelet":"x: 1\n"}}`
	mustPut(t, s, "checkpoints/0f2a4c7e-3d1b", object)
	raw := content(t, place(filepath.Join(dir, "checkpoints"), "0f2a4c7e-3d1b", 1))
	_, body, _ := bytes.Cut(raw, []byte("\n"))
	if want := object + endMark; string(body) != want {
		t.Fatalf("the file holds %q after its header, want %q", body, want)
	}
}

// R-CS-17, E8: no write to other streams, no damage to them, no lack of room takes the last known good record away.
func TestLastKnownGoodOutlivesEverythingElse(t *testing.T) {
	dir := t.TempDir()
	o := bare()
	o.MaxStore = 64 << 10
	s := openStore(t, dir, o)
	mustPut(t, s, "good/uid", "good")
	for i := range 200 {
		stream := fmt.Sprint("checkpoints/uid", i%5)
		err := s.Put(t.Context(), stream, bytes.Repeat([]byte{byte(i)}, 100*i))
		if err != nil && !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		if i%10 == 3 {
			damageNewest(t, dir, s, stream)
		}
		if i%50 == 49 {
			check(t, s.Delete(t.Context(), stream))
			mustClose(t, s)
			s = openStore(t, dir, o)
		}
		wantRecord(t, s, "good/uid", "good", 1)
	}
}

// damageNewest cuts the newest file of a stream, where there is one.
func damageNewest(t *testing.T, dir string, s *Store, stream string) {
	t.Helper()
	rec, err := s.Read(t.Context(), stream)
	if err != nil {
		return
	}
	n, err := parseName(stream)
	check(t, err)
	path := place(filepath.Join(dir, n.dir), n.base, rec.Generation)
	replace(t, path, content(t, path)[:10])
	if rec, err = s.Read(t.Context(), stream); err == nil && len(rec.Damage) == 0 {
		t.Fatal("the damage was not seen")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"one generation": {Generations: 1}, "negative generations": {Generations: -1}, "negative payload": {MaxPayload: -1},
		"payload beyond reason": {MaxPayload: 1 << 40}, "negative store": {MaxStore: -1}, "writer with a space": {Writer: "v 1"},
		"writer too long": {Writer: string(bytes.Repeat([]byte("v"), writerMax+1))},
	} {
		if s, err := Open(t.TempDir(), o); err == nil {
			mustClose(t, s)
			t.Errorf("%s: Open accepted it", name)
		}
		if _, err := OpenReader(t.TempDir(), o); err == nil {
			t.Errorf("%s: OpenReader accepted it", name)
		}
	}
	if _, err := Open("", bare()); err == nil {
		t.Error("Open without a directory accepted it")
	}
	o, err := Options{}.complete()
	if err != nil || o.Generations != 3 || o.MaxPayload != 4<<20 || o.MaxStore != 64<<20 || o.Ballast != 1<<20 {
		t.Errorf("the zero Options: got %+v, %v, want the defaults", o, err)
	}
}

// The cost of a start is bounded: 16 streams of 3 records of 64 KiB, every byte verified. The figure is logged, as it depends
// on the machine; that each file was read is checked.
func TestOpenVerifiesEverything(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, bare())
	for i := range 16 {
		for g := range 3 {
			check(t, s.Put(t.Context(), fmt.Sprint("s", i), bytes.Repeat([]byte{byte(g)}, 64<<10)))
		}
	}
	mustClose(t, s)
	began := time.Now()
	s = openStore(t, dir, bare())
	t.Logf("Open with 48 records of 64 KiB: %v", time.Since(began))
	for i := range 16 {
		for _, g := range s.books.root.streams[fmt.Sprint("s", i)].gens {
			if !g.verified {
				t.Fatalf("stream %d, generation %d was not verified", i, g.gen)
			}
		}
	}
}

// What is dropped is below the two newest that verified, however many newer ones can not be read.
func TestTheTwoNewestThatVerifyAreKept(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, bare())
	for i := range 3 {
		mustPut(t, s, "a", fmt.Sprint(i))
	}
	mustClose(t, s)
	spy := newSpy()
	spy.before = func(c call) error {
		if c.op == "read" && (c.file == recordFile("a", 2) || c.file == recordFile("a", 3)) {
			return unix.EIO
		}
		return nil
	}
	s = openSpied(t, spy, dir, bare())
	wantRecord(t, s, "a", "0", 1)
	mustPut(t, s, "a", "3")
	wantFiles(t, dir, recordFile("a", 1), recordFile("a", 2), recordFile("a", 3), recordFile("a", 4))
	mustPut(t, s, "a", "4")
	wantFiles(t, dir, recordFile("a", 3), recordFile("a", 4), recordFile("a", 5))
}
