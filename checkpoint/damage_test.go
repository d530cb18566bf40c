// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/tier"
)

// spoilers are the kinds of damage of the read rules that lie in the content of a file.
func spoilers(t *testing.T) map[string]func(whole []byte) []byte {
	foreign := func(change func(*header)) func([]byte) []byte {
		return func(whole []byte) []byte {
			h, payload, f := decode(whole)
			if f != nil {
				t.Fatal(f.err)
			}
			change(&h)
			return encode(h, payload)
		}
	}
	return map[string]func([]byte) []byte{
		reasonEmpty:           func([]byte) []byte { return nil },
		reasonTruncated:       func(b []byte) []byte { return b[:len(b)-1] },
		reasonTrailing:        func(b []byte) []byte { return append(b, 0) },
		reasonHeader:          func(b []byte) []byte { b[3] ^= 1; return b },
		reasonDigest:          func(b []byte) []byte { b[len(b)-len(endMark)-1] ^= 1; return b },
		reasonEndMark:         func(b []byte) []byte { b[len(b)-2] ^= 1; return b },
		reasonForeign:         foreign(func(h *header) { h.machine = strings.Repeat("0", machineDigits) }),
		"foreign, stream":     foreign(func(h *header) { h.stream = "b" }),
		"foreign, generation": foreign(func(h *header) { h.generation = 1 }),
		"digest, zeroed page": func(b []byte) []byte { clear(b[len(b)-len(endMark)-8 : len(b)-len(endMark)]); return b },
	}
}

func reasonOf(key string) string {
	word, _, _ := strings.Cut(key, ",")
	return word
}

// storeOf makes a store whose stream "a" has generations 1 to 3 with the payloads "payload 1" to "payload 3".
func storeOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := openStore(t, dir, bare())
	for _, p := range []string{"payload 1", "payload 2", "payload 3"} {
		mustPut(t, s, "a", p)
	}
	mustClose(t, s)
	return dir
}

// Damage of the newest, found at Open or by a Get: the one before is returned, with a report; the file is set aside;
// the number stays taken; and all of that still holds after a restart, until the next Put. L-CS-06.
func TestDamageFallsBackIsReportedAndSetAside(t *testing.T) {
	for key, spoil := range spoilers(t) {
		for _, live := range []bool{false, true} {
			t.Run(strings.ReplaceAll(key, ", ", "-")+map[bool]string{false: "/at-open", true: "/while-open"}[live], func(t *testing.T) {
				checkFallback(t, reasonOf(key), spoil, live)
			})
		}
	}
}

func checkFallback(t *testing.T, reason string, spoil func([]byte) []byte, live bool) {
	dir := storeOf(t)
	path := place(dir, "a", 3)
	var told []Damage
	o := bare()
	o.OnDamage = func(d Damage) { told = append(told, d) }
	var s *Store
	if live {
		s = openStore(t, dir, o)
	}
	replace(t, path, spoil(content(t, path)))
	if !live {
		s = openStore(t, dir, o)
	}
	for range 3 {
		rec := wantRecord(t, s, "a", "payload 2", 2)
		if len(rec.Damage) != 1 || rec.Damage[0].Generation != 3 || rec.Damage[0].Reason != reason || rec.Damage[0].Stream != "a" {
			t.Fatalf("Record.Damage: got %v, want generation 3 %s", rec.Damage, reason)
		}
	}
	if len(told) != 1 || told[0].Generation != 3 || told[0].Reason != reason {
		t.Fatalf("OnDamage: got %v, want generation 3 %s, once", told, reason)
	}
	aside := asideFile("a", 3, reason)
	wantFiles(t, dir, "a.0000000000000001", "a.0000000000000002", aside)
	mustClose(t, s)

	s = openStore(t, dir, bare())
	if rec := wantRecord(t, s, "a", "payload 2", 2); len(rec.Damage) != 1 || rec.Damage[0].Reason != reason {
		t.Fatalf("Record.Damage after a restart: got %v, want generation 3 %s", rec.Damage, reason)
	}
	mustPut(t, s, "a", "payload 2") // equal to the newest that verifies
	mustPut(t, s, "a", "payload 4")
	if rec := wantRecord(t, s, "a", "payload 4", 4); len(rec.Damage) != 0 {
		t.Fatalf("Record.Damage after a Put: got %v, want none", rec.Damage)
	}
}

// Never silently empty: when nothing verifies, reading says so, also after a restart and through a Reader.
// L-CS-05.
func TestAllDamagedIsNotAbsent(t *testing.T) {
	for key, spoil := range spoilers(t) {
		reason := reasonOf(key)
		if reason == reasonForeign {
			continue
		}
		t.Run(strings.ReplaceAll(key, ", ", "-"), func(t *testing.T) {
			dir := storeOf(t)
			for gen := range uint64(3) {
				path := place(dir, "a", gen+1)
				replace(t, path, spoil(content(t, path)))
			}
			checkCorrupt(t, openReader(t, dir), reason)
			for range 2 {
				s := openStore(t, dir, bare())
				checkCorrupt(t, s, reason)
				names, err := s.List(t.Context(), "")
				if err != nil || len(names) != 1 || names[0] != "a" {
					t.Fatalf("List: got %q, %v, want the damaged stream", names, err)
				}
				mustClose(t, s)
				checkCorrupt(t, openReader(t, dir), reason)
			}
			s := openStore(t, dir, bare())
			mustPut(t, s, "a", "new")
			wantRecord(t, s, "a", "new", 4)
		})
	}
}

func checkCorrupt(t *testing.T, s reads, reason string) {
	t.Helper()
	_, err := s.Read(t.Context(), "a")
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || !errors.Is(err, ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Read: got %v, want a CorruptError that is not fs.ErrNotExist", err)
	}
	if len(corrupt.Damage) != 3 || corrupt.Damage[0].Generation != 3 || corrupt.Damage[0].Reason != reason {
		t.Fatalf("CorruptError: got %v, want 3 x %s, newest first", corrupt.Damage, reason)
	}
}

// A cloned disk: what another machine wrote is absent, and kept.
// S-CS-09.
func TestForeignRecordsAreAbsentAndKept(t *testing.T) {
	dir := storeOf(t)
	o := bare()
	o.MachineID = "another machine"
	r, err := OpenReader(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t, dir, o)
	for _, reads := range []reads{s, r} {
		_, err := reads.Read(t.Context(), "a")
		wantError(t, "Read", err, fs.ErrNotExist)
		wantError(t, "Read", err, ErrForeign)
	}
	for _, l := range []interface {
		List(context.Context, string) ([]string, error)
	}{s, r} {
		if names, err := l.List(t.Context(), ""); err != nil || len(names) != 0 {
			t.Fatalf("List: got %q, %v, want none", names, err)
		}
	}
	mustPut(t, s, "a", "mine")
	wantRecord(t, s, "a", "mine", 4)
	wantFiles(t, dir, "a.0000000000000001.foreign", "a.0000000000000002.foreign", "a.0000000000000003.foreign", "a.0000000000000004")
}

func TestUnknownMachineIsNotForeign(t *testing.T) {
	h := sample()
	for _, tt := range []struct {
		record, here string
		foreign      bool
	}{
		{h.machine, h.machine, false}, {h.machine, none, false}, {none, h.machine, false}, {none, none, false},
		{h.machine, strings.Repeat("1", machineDigits), true},
	} {
		l := loader{machine: tt.here}
		h.machine = tt.record
		n, err := parseName(h.stream)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.place(&h, n, h.generation) != nil; got != tt.foreign {
			t.Errorf("record of machine %s on machine %s: foreign %t, want %t", tt.record, tt.here, got, tt.foreign)
		}
	}
}

// A downgrade discards nothing: a newer record blocks its stream and stays as it is.
// L-CS-24.
func TestNewerRecordIsNeitherUsedNorTouched(t *testing.T) {
	dir := storeOf(t)
	path := place(dir, "a", 4)
	replace(t, path, newer("2"))
	s := openStore(t, dir, bare())
	for _, reads := range []reads{s, openReader(t, dir)} {
		_, err := reads.Read(t.Context(), "a")
		wantError(t, "Read", err, ErrTooNew)
	}
	for name, err := range map[string]error{
		"Put": s.Put(t.Context(), "a", []byte("old")), "Delete": s.Delete(t.Context(), "a"),
	} {
		wantError(t, name, err, ErrTooNew)
		wantError(t, name, err, ErrNotWritten)
	}
	wantFiles(t, dir, "a.0000000000000001", "a.0000000000000002", "a.0000000000000003", "a.0000000000000004")
	if !bytes.Equal(content(t, path), newer("2")) {
		t.Fatal("the newer record was changed")
	}
	mustPut(t, s, "b", "other streams go on")
}

// What is not a plain file of ours is refused, and does not stop the stream.
// S-CS-05.
func TestPlantedFilesAreNotTrusted(t *testing.T) {
	plants := map[string]func(t *testing.T, dir, path string){
		"symlink":         func(t *testing.T, _, path string) { check(t, os.Symlink("a.0000000000000003", path)) },
		"symlink outside": func(t *testing.T, _, path string) { check(t, os.Symlink("/etc/hostname", path)) },
		"hard link":       func(t *testing.T, _, path string) { plantLink(t, path) },
		"fifo":            func(t *testing.T, _, path string) { check(t, unix.Mkfifo(path, 0o600)) },
		"directory":       func(t *testing.T, _, path string) { check(t, os.Mkdir(path, 0o700)) },
		"writable for others": func(t *testing.T, _, path string) {
			replace(t, path, []byte("x"))
			check(t, os.Chmod(path, 0o602))
		},
		"writable for the group": func(t *testing.T, _, path string) {
			replace(t, path, []byte("x"))
			check(t, os.Chmod(path, 0o620))
		},
		"another owner": func(t *testing.T, _, path string) {
			tier.System(t, tier.Root) // to give a file away
			replace(t, path, []byte("x"))
			check(t, os.Chown(path, 12345, -1))
		},
	}
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			dir := storeOf(t)
			plant(t, dir, place(dir, "a", 9))
			s := openStore(t, dir, bare())
			for _, reads := range []reads{s, openReader(t, dir)} {
				rec := wantRecord(t, reads, "a", "payload 3", 3)
				if len(rec.Damage) != 1 || rec.Damage[0].Reason != reasonUntrusted || !errors.Is(&rec.Damage[0], ErrUntrusted) {
					t.Fatalf("Record.Damage: got %v, want untrusted", rec.Damage)
				}
			}
			mustPut(t, s, "a", "next")
			wantRecord(t, s, "a", "next", 10)
		})
	}
}

// plantLink makes a file with two names, of which one is in the store.
func plantLink(t *testing.T, path string) {
	other := filepath.Join(t.TempDir(), "other")
	replace(t, other, []byte("x"))
	check(t, os.Link(other, path))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
