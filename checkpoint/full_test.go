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

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/tier"
)

// smallDisk mounts a file system in memory with a size, for tests that fill it up or turn it read-only.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	tier.Require(t)
	dir := t.TempDir()
	if err := unix.Mount("belay-test", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("mounting a small file system needs the right to mount: %v", err)
	}
	t.Cleanup(func() { check(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// fill takes all the room that is left.
func fill(t *testing.T, dir string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "filler")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	check(t, err)
	defer f.Close()
	for _, chunk := range []int{64 << 10, 4 << 10, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, chunk))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("filling the disk: %v", err)
		}
	}
	return file
}

// D7: on a full disk a pending record still fits into the ballast; then Put says so, and everything is readable; and
// with room again, the store works and has its ballast back.
func TestFullDiskUsesTheBallastOnce(t *testing.T) {
	tier.System(t, tier.Root, tier.Mount)
	disk := smallDisk(t, "size=8m")
	dir := filepath.Join(disk, "store")
	o := bare()
	o.Ballast = 0
	s := openStore(t, dir, o)
	mustPut(t, s, "last-known-good", "good")
	for round := range 20 {
		filler := fill(t, disk)
		big := bytes.Repeat([]byte{byte(round)}, 700<<10)
		check(t, s.Put(t.Context(), "big", big))
		fill(t, disk)
		for range 3 {
			err := s.Put(t.Context(), "big", append(big, 1))
			wantError(t, "Put on a full disk", err, ErrFull)
			wantError(t, "Put on a full disk", err, ErrNotWritten)
		}
		wantNoTemps(t, dir)
		for _, reads := range []reads{s, openReader(t, dir)} {
			wantRecord(t, reads, "last-known-good", "good", 1)
			if rec, err := reads.Read(t.Context(), "big"); err != nil || !bytes.Equal(rec.Payload, big) {
				t.Fatalf("round %d: the record that was put is not read: %v", round, err)
			}
		}
		mustClose(t, s)
		s = openStore(t, dir, o) // a start on a full disk
		wantRecord(t, s, "last-known-good", "good", 1)
		check(t, os.Remove(filler))
		check(t, s.Delete(t.Context(), "big"))
		mustPut(t, s, "small", fmt.Sprint(round))
		info, err := os.Stat(filepath.Join(dir, ballastFile))
		if err != nil || info.Size() != defaultBallast {
			t.Fatalf("round %d: the ballast is not back: %v", round, err)
		}
	}
}

func TestNoInodesLeftIsFull(t *testing.T) {
	tier.System(t, tier.Root, tier.Mount)
	disk := smallDisk(t, "size=8m,nr_inodes=12")
	dir := filepath.Join(disk, "store")
	s := openStore(t, dir, bare())
	mustPut(t, s, "a", "x")
	var err error
	for i := 0; err == nil; i++ {
		err = s.Put(t.Context(), fmt.Sprint("s", i), []byte("x"))
	}
	wantError(t, "Put without an inode", err, ErrFull)
	wantRecord(t, s, "a", "x", 1)
	check(t, s.Delete(t.Context(), "s0"))
	check(t, s.Delete(t.Context(), "s1"))
	mustPut(t, s, "a", "y")
}

// E9: a disk that turned read-only changes nothing but the answer to Put; and the next start reads, too.
func TestReadOnlyDiskIsRead(t *testing.T) {
	tier.System(t, tier.Root, tier.Mount)
	disk := smallDisk(t, "size=8m")
	dir := filepath.Join(disk, "store")
	s := openStore(t, dir, bare())
	mustPut(t, s, "d/a", "x")
	mustPut(t, s, "d/a", "y")
	check(t, unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	for range 2 {
		wantRecord(t, s, "d/a", "y", 2)
		for what, err := range map[string]error{
			"Put": s.Put(t.Context(), "d/a", []byte("z")), "Put of a new stream": s.Put(t.Context(), "b", []byte("z")),
			"Put of a new directory": s.Put(t.Context(), "e/b", []byte("z")), "Delete": s.Delete(t.Context(), "d/a"),
		} {
			wantError(t, what, err, ErrReadOnly)
			wantError(t, what, err, ErrNotWritten)
		}
		wantRecord(t, s, "d/a", "y", 2)
		mustClose(t, s)
		s = openStore(t, dir, bare())
	}
	_, err := Open(filepath.Join(disk, "none"), bare())
	wantError(t, "Open of a new store", err, unix.EROFS)
	check(t, unix.Mount("", disk, "", unix.MS_REMOUNT, ""))
	mustPut(t, s, "d/a", "z")
}

// E7: the store never grows above its quota, and gives up no verified record for it.
func TestQuotaIsKept(t *testing.T) {
	dir := t.TempDir()
	o := bare()
	o.MaxStore = 20 << 10
	s := openStore(t, dir, o)
	var full int
	for i := range 60 {
		stream := fmt.Sprint("s", i%3)
		was, _ := s.Get(t.Context(), stream)
		payload := bytes.Repeat([]byte{byte(i)}, 100*i)
		err := s.Put(t.Context(), stream, payload)
		if errors.Is(err, ErrFull) {
			full++
			payload = was
		} else if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(t.Context(), stream); err != nil || !bytes.Equal(got, payload) {
			t.Fatalf("Put %d: the stream has %d bytes, want %d (error %v)", i, len(got), len(payload), err)
		}
		if size := sizeOf(t, dir); size > o.MaxStore || size != s.books.bytes.used {
			t.Fatalf("Put %d: the store has %d bytes and counts %d, it may have %d", i, size, s.books.bytes.used, o.MaxStore)
		}
	}
	if full == 0 || full == 60 {
		t.Fatalf("%d of 60 Puts were refused: the quota was not reached, or never left", full)
	}
}

func sizeOf(t *testing.T, dir string) (size int64) {
	t.Helper()
	for _, n := range files(t, dir) {
		if n != lockFile {
			size += int64(len(content(t, filepath.Join(dir, n))))
		}
	}
	return size
}

// What is set aside is bounded: three files a stream, and 16 MiB in all; and it never ends as absence.
func TestDamagedFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, bare())
	for i := range 8 {
		mustPut(t, s, "a", fmt.Sprint(i))
		path := place(dir, "a", uint64(i+1))
		replace(t, path, content(t, path)[:20])
		_, err := s.Get(t.Context(), "a")
		wantError(t, "Get", err, ErrCorrupt)
	}
	wantFiles(t, dir, asideFile("a", 6, reasonTruncated), asideFile("a", 7, reasonTruncated), asideFile("a", 8, reasonTruncated))

	for i := range 6 {
		stream := fmt.Sprint("big", i)
		mustPut(t, s, stream, "x")
		replace(t, place(dir, stream, 1), bytes.Repeat([]byte("x"), 4<<20))
		_, err := s.Get(t.Context(), stream)
		wantError(t, "Get", err, ErrCorrupt)
	}
	mustClose(t, s)
	s = openStore(t, dir, bare())
	if size := sizeOf(t, dir); size > asideBytes {
		t.Fatalf("what is set aside has %d bytes, may have %d", size, asideBytes)
	}
	for i := range 6 {
		_, err := s.Get(t.Context(), fmt.Sprint("big", i))
		wantError(t, "Get", err, ErrCorrupt)
	}
}
