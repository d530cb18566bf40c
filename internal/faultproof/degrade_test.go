// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/internal/tier"
)

// wantKinds checks that an error matches each of the kinds.
func wantKinds(t *testing.T, what string, err error, kinds ...error) {
	t.Helper()
	for _, kind := range kinds {
		if !errors.Is(err, kind) {
			t.Fatalf("%s: got %v, want an error that matches %q", what, err, kind)
		}
	}
}

// wantValues checks what a store reads.
func wantValues(t *testing.T, k keeper, want map[string]value) {
	t.Helper()
	for stream, v := range want {
		if got, _, err := k.look(stream); got != v || err != nil {
			t.Fatalf("%s: got %d, %v, want %d", stream, got, err, v)
		}
	}
}

// D8, E9: a file system is remounted read-only and back, again and again. What is there is read, also by a store that is opened then;
// Put and Delete say why they do nothing; and the same store writes again afterwards.
func TestRemountedReadOnly(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	eachKind(t, []kind{ext4, xfs, btrfs}, func(t *testing.T, k kind) {
		v := newVolume(t, k)
		must(t, v.mount())
		kp, err := openOurs(v.store())
		must(t, err)
		cycles := figure(3, 50, 500)
		for n := value(1); int(n) <= cycles; n++ {
			must(t, kp.put(t.Context(), "d/a", n))
			want := map[string]value{"d/a": n, "none": 0}
			must(t, unix.Mount("", v.dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
			for range 2 {
				wantValues(t, kp, want)
				wantKinds(t, "Put", kp.put(t.Context(), "d/a", n+1), checkpoint.ErrReadOnly, checkpoint.ErrNotWritten)
				wantKinds(t, "Put of a new stream", kp.put(t.Context(), "e/a", n), checkpoint.ErrReadOnly, checkpoint.ErrNotWritten)
				wantKinds(t, "Delete", kp.put(t.Context(), "d/a", 0), checkpoint.ErrReadOnly, checkpoint.ErrNotWritten)
				must(t, kp.close())
				kp, err = openOurs(v.store())
				must(t, err)
			}
			must(t, unix.Mount("", v.dir, "", unix.MS_REMOUNT, ""))
		}
		must(t, kp.close())
		must(t, v.unmount())
		report(t, "D8."+k.name+".read-only", "cycles", cycles, cycles, "lost=0", true)
	})
}

// setImmutable does what chattr +i and -i do.
func setImmutable(path string, on bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	flags := 0
	if on {
		flags = unix.STATX_ATTR_IMMUTABLE // the same bit as FS_IMMUTABLE_FL
	}
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
}

// D8: an administrator makes a directory, or a record, immutable. Reading goes on; Put and Delete say that nothing was written, or
// write beside it; and everything works when it is over.
func TestImmutableFiles(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	eachKind(t, []kind{ext4, xfs, btrfs}, func(t *testing.T, k kind) {
		v := newVolume(t, k)
		must(t, v.mount())
		kp, err := openOurs(v.store())
		must(t, err)
		n := value(1)
		must(t, kp.put(t.Context(), "d/a", n))
		dir := filepath.Join(v.store(), "d")

		must(t, setImmutable(dir, true))
		wantKinds(t, "Put into an immutable directory", kp.put(t.Context(), "d/a", n+1), checkpoint.ErrNotWritten, os.ErrPermission)
		wantKinds(t, "Delete from it", kp.put(t.Context(), "d/a", 0), checkpoint.ErrNotWritten, os.ErrPermission)
		wantValues(t, kp, map[string]value{"d/a": n})
		must(t, kp.put(t.Context(), "elsewhere", n))
		must(t, kp.close())
		kp, err = openOurs(v.store())
		must(t, err)
		wantValues(t, kp, map[string]value{"d/a": n, "elsewhere": n})
		must(t, setImmutable(dir, false))

		records, err := filepath.Glob(filepath.Join(dir, "a.*"))
		must(t, err)
		must(t, setImmutable(records[0], true))
		for n = 2; n < 12; n++ { // the immutable one can not be dropped
			must(t, kp.put(t.Context(), "d/a", n))
			wantValues(t, kp, map[string]value{"d/a": n})
		}
		wantKinds(t, "Delete", kp.put(t.Context(), "d/a", 0), checkpoint.ErrNotWritten, os.ErrPermission)
		wantValues(t, kp, map[string]value{"d/a": n - 1})
		must(t, setImmutable(records[0], false))
		must(t, kp.put(t.Context(), "d/a", 0))
		wantValues(t, kp, map[string]value{"d/a": 0})
		must(t, kp.close())
		must(t, v.unmount())
		report(t, "D8."+k.name+".immutable", "cases", 2, 2, "lost=0", true)
	})
}

// soon is how long a call may take that waits for no disk. The machine may be busy.
const soon = 5 * time.Second

// inTime fails where a call does not return soon.
func inTime(t *testing.T, what string, call func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-time.After(soon):
		t.Fatalf("%s waits for the disk", what)
		return nil
	}
}

// D8: the disk takes very long for a write. Whoever reads, or waits for the turn of a stream, is not held up beyond its own deadline;
// the write that is under way ends when the disk does, and with its deadline passed it says that nothing was written, or it is
// acknowledged; and nothing is stuck afterwards.
func TestSlowDisk(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	eachKind(t, []kind{ext4, xfs, btrfs}, func(t *testing.T, k kind) {
		stall := figure(300*time.Millisecond, time.Second, 30*time.Second)
		rounds := figure(1, 3, 3)
		r := newRecorder(t, k)
		must(t, r.mount())
		kp, err := openOurs(r.store())
		must(t, err)
		defer kp.close()
		l := newLedger()
		w := writers{keeper: kp, ledger: l, journal: l}
		must(t, w.write(t.Context(), "d/a", 1))
		must(t, w.write(t.Context(), "other", 1))
		for n := value(2); int(n) < 2+rounds; n++ {
			slowRound(t, r, w, n, stall)
		}
		if broken := l.judge(kp); len(broken) > 0 {
			t.Error(broken)
		}
		must(t, kp.close())
		must(t, r.unmount())
		report(t, "D8."+k.name+".slow", "stalls", rounds, rounds, fmt.Sprintf("each=%v deadlocks=0 lost=0", stall), true)
	})
}

func slowRound(t *testing.T, r *recorder, w writers, n value, stall time.Duration) {
	t.Helper()
	r.call(t, "Hold", stall+time.Minute, nil) // what is checked below must not be over only because the disk answers again
	under := make(chan error, 2)
	go func() { under <- w.write(t.Context(), "d/a", n) }()
	r.waits(t)
	short, cancel := context.WithTimeout(t.Context(), stall/4)
	defer cancel()
	go func() { under <- w.write(short, "d/b", n) }() // its deadline passes while the disk does not answer

	must(t, inTime(t, "Read", func() error { _, _, err := w.keeper.look("other"); return err }))
	for range 3 {
		waiting, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		err := inTime(t, "a Put that waits for its turn", func() error { return w.write(waiting, "d/a", 1000+n) })
		cancel()
		wantKinds(t, "a Put whose deadline passed", err, checkpoint.ErrNotWritten, context.DeadlineExceeded)
	}
	r.call(t, "Hold", stall, nil)
	for range 2 {
		select {
		case err := <-under:
			if err != nil {
				wantKinds(t, "a Put that the disk held up", err, checkpoint.ErrNotWritten, context.DeadlineExceeded)
			}
		case <-time.After(stall + 10*soon):
			t.Fatal("a Put does not end though the disk answers again")
		}
	}
}

// waits returns when a write or a flush waits for the disk that is held.
func (r *recorder) waits(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(soon); ; <-time.After(time.Millisecond) {
		var counts Counts
		r.call(t, "Counts", struct{}{}, &counts)
		if counts.Waiting > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing came to the disk")
		}
	}
}
