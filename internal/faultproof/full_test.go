// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/internal/tier"
)

// memoryDisk mounts a small file system in memory.
func memoryDisk(t *testing.T, options string) (dir string) {
	t.Helper()
	needMounts(t)
	dir = filepath.Join(scratch(t), "m")
	must(t, os.Mkdir(dir, 0o755))
	must(t, unix.Mount("belay-faults", dir, "tmpfs", 0, options))
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// fillBytes takes all the room that is left, to the last byte.
func fillBytes(disk string) error {
	f, err := os.OpenFile(filepath.Join(disk, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	const large = 1 << 20
	for at := info.Size(); err == nil; at += large { // quickly, as far as that goes
		err = unix.Fallocate(int(f.Fd()), 0, at, large)
	}
	if !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("filling the disk: %w", err)
	}
	for _, chunk := range []int{64 << 10, 4 << 10, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, chunk))
		}
		if !errors.Is(err, unix.ENOSPC) {
			return fmt.Errorf("filling the disk: %w", err)
		}
	}
	return nil
}

// fillInodes makes empty files until there is no room for another one.
func fillInodes(disk string) error {
	if err := os.MkdirAll(filepath.Join(disk, "fillers"), 0o700); err != nil && !errors.Is(err, unix.ENOSPC) {
		return err
	}
	for i := 0; ; i++ {
		err := os.WriteFile(filepath.Join(disk, "fillers", fmt.Sprint(i)), nil, 0o600)
		if errors.Is(err, unix.ENOSPC) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func free(disk string) error {
	return errors.Join(os.RemoveAll(filepath.Join(disk, "filler")), os.RemoveAll(filepath.Join(disk, "fillers")))
}

// fullCase is a store on a disk that is filled and freed.
type fullCase struct {
	disk, dir string
	fill      func(disk string) error
	ballast   int64
	helps     bool          // the room of the ballast is there at once
	patience  time.Duration // some file systems have their room back only after a while
	size      int           // of the records that meet the full disk
	spread    bool          // over streams of their own: where files run out, a stream's newest record may take the place of its oldest
	store     *checkpoint.Store
	n         int               // makes each payload another one
	last      map[string][]byte // the acknowledged payloads
	saved     int               // records that were written though the disk was full
	waited    int               // Puts that were refused after there was room again
	fulls     int               // cycles that came to a Put that was refused
}

func (c *fullCase) start(t *testing.T, disk string) {
	t.Helper()
	c.disk, c.dir, c.last = disk, filepath.Join(disk, "store"), map[string][]byte{}
	c.open(t)
	must(t, c.put(t, "last-known-good", 1000))
}

func (c *fullCase) open(t *testing.T) {
	t.Helper()
	o := options()
	o.Ballast = c.ballast
	store, err := checkpoint.Open(c.dir, o)
	must(t, err)
	c.store = store
}

func (c *fullCase) put(t *testing.T, stream string, size int) error {
	t.Helper()
	c.n++
	text := bytes.Repeat([]byte(fmt.Sprint(c.n, " ")), size)[:size]
	err := c.store.Put(t.Context(), stream, text)
	if err == nil {
		c.last[stream] = text
	} else if !errors.Is(err, checkpoint.ErrFull) || !errors.Is(err, checkpoint.ErrNotWritten) {
		t.Fatalf("cycle %d: Put on a full disk: %v, want ErrFull and ErrNotWritten", c.fulls, err)
	}
	return err
}

// reads checks that every record is what was acknowledged.
func (c *fullCase) reads(t *testing.T) {
	t.Helper()
	for stream, want := range c.last {
		if got, err := c.store.Get(t.Context(), stream); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("cycle %d: %s: %d bytes, error %v; acknowledged were %d bytes", c.fulls, stream, len(got), err, len(want))
		}
	}
}

// cycle fills the disk, writes until the store says that it is full, reads, opens the store on the full disk, reads,
// and frees the disk: then the store works again by itself, and has its ballast back.
func (c *fullCase) cycle(t *testing.T) {
	t.Helper()
	must(t, c.fill(c.disk))
	for puts := 0; c.put(t, c.stream(puts), c.size) == nil; puts++ {
		if puts == 12 {
			t.Fatalf("cycle %d: %d records fit on a full disk: the ballast is used more than once", c.fulls, puts)
		}
		c.saved++
		must(t, c.fill(c.disk))
	}
	if _, err := os.Stat(filepath.Join(c.dir, ".ballast")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("cycle %d: the disk is full, and the ballast is still there: %v", c.fulls, err)
	}
	c.reads(t)
	if c.fulls%3 == 0 {
		must(t, c.store.Close())
		c.open(t)
		c.reads(t)
	}
	must(t, free(c.disk))
	c.recovers(t)
	c.fulls++
}

func (c *fullCase) stream(n int) string {
	if c.spread {
		return fmt.Sprint("state-", n)
	}
	return "state"
}

func (c *fullCase) recovers(t *testing.T) {
	t.Helper()
	for n := 0; c.spread && c.last[c.stream(n)] != nil; n++ {
		must(t, c.store.Delete(t.Context(), c.stream(n)))
		delete(c.last, c.stream(n))
	}
	for deadline := time.Now().Add(c.patience); ; <-time.After(10 * time.Millisecond) {
		err := c.put(t, "after", 100)
		if err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("cycle %d: with room again: %v", c.fulls, err)
		}
		c.waited++
	}
	must(t, c.put(t, "state", 100))
	c.reads(t)
	if info, err := os.Stat(filepath.Join(c.dir, ".ballast")); err != nil || info.Size() != c.ballast {
		t.Fatalf("cycle %d: the ballast is not back: %v", c.fulls, err)
	}
}

func (c *fullCase) run(t *testing.T, name string, cycles int) {
	t.Helper()
	for range cycles {
		c.cycle(t)
	}
	must(t, c.store.Close())
	needs := cycles
	if !c.helps {
		needs = 0
	}
	rest := fmt.Sprintf("written-when-full=%d refused-after=%d lost=0", c.saved, c.waited)
	report(t, "D7."+name, "cycles", c.fulls, cycles, rest, c.saved >= needs)
}

// D7: a disk without room, over and over. A pending record still fits into the ballast, once; then Put says that the
// disk is full, everything stays readable, also for a store that is opened then; and with room again it goes on by
// itself.
func TestFullDiskInMemory(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	c := &fullCase{fill: fillBytes, size: 60 << 10, ballast: 128 << 10, helps: true}
	c.start(t, memoryDisk(t, "mode=0755,size=2m"))
	c.run(t, "tmpfs.bytes", figure(50, 1000, 10000))
}

// D7: the same, for files instead of bytes.
func TestNoFilesLeftInMemory(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	c := &fullCase{fill: fillInodes, size: 4 << 10, ballast: 128 << 10, helps: true, spread: true}
	c.start(t, memoryDisk(t, "mode=0755,size=8m,nr_inodes=24"))
	c.run(t, "tmpfs.inodes", figure(50, 1000, 10000))
}

// D7: the same on file systems that need room to make room. btrfs gives the room of the ballast back with its next
// commit only, and Put does not wait for that: there, a full disk takes no record, and that is all that differs.
func TestFullDisk(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	mixed := btrfs // one kind of chunks for data and metadata, as is right for a small disk: else the data keep theirs when it is freed
	mixed.mkfs = append(slices.Clone(mixed.mkfs[:1]), "-q", "-f", "-K", "--mixed")
	eachKind(t, []kind{ext4, xfs, mixed}, func(t *testing.T, k kind) {
		v := newVolume(t, k)
		must(t, v.mount())
		c := &fullCase{fill: fillBytes, size: 20 << 10, ballast: 1 << 20, helps: k.name != btrfs.name, patience: 30 * time.Second}
		c.start(t, v.dir)
		c.run(t, k.name, figure(2, 20, 200))
		must(t, v.unmount())
	})
}
