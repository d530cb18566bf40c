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

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/internal/tier"
)

// sick is what came of disks that failed once.
type sick struct {
	cases, writes, flushes int // disks that failed, and what it was that failed
	acknowledged, refused  int // writes after the fault was set
	lossy                  int
	broken                 []string
}

// count enters how a write ended, and reports whether it was acknowledged.
func (sum *sick) count(f Fault, s subject, err error) bool {
	if err == nil {
		sum.acknowledged++
		return true
	}
	sum.refused++
	if s.name == ours().name && !errors.Is(err, checkpoint.ErrNotWritten) && !errors.Is(err, checkpoint.ErrIndeterminate) {
		sum.broken = append(sum.broken, fmt.Sprintf("%+v: %v is neither kind of error", f, err))
	}
	return false
}

// failOnce writes to a disk that fails one write or flush, and then heals; then it cuts the power, and looks. It reports whether it came
// to the fault.
func failOnce(t *testing.T, k kind, s subject, f Fault, reopen bool, sum *sick) bool {
	t.Helper()
	r := newRecorder(t, k)
	defer r.close(t)
	must(t, r.mount())
	must(t, s.prepare(r.store()))
	kp, err := s.open(r.store())
	must(t, err)
	l := newLedger()
	w := writers{keeper: kp, ledger: l, journal: l}
	must(t, w.write(t.Context(), "d/a", 1))
	must(t, syncfs(r.dir))

	r.call(t, "SetFault", f, nil)
	for v := value(2); v <= 4; v++ {
		if !sum.count(f, s, w.write(t.Context(), "d/a", v)) {
			sum.count(f, s, w.write(t.Context(), "d/a", v)) // the same payload again
		}
	}
	if reopen {
		kp = sum.reopen(t, r.volume, f, s, kp, w)
	}
	var counts Counts
	r.call(t, "Counts", struct{}{}, &counts)
	image := filepath.Join(filepath.Dir(r.dir), "after")
	r.call(t, "Save", image, nil) // what is on the disk at the instant of the cut, with no help from the caches
	if kp != nil {
		_ = kp.close()
	}
	must(t, r.unmount())
	if !counts.Failed {
		return false
	}
	broken := afterPowerCut(t, k, s, image, l)
	sum.cases++
	if len(broken) > 0 {
		sum.lossy++
	}
	for _, b := range broken {
		sum.broken = append(sum.broken, fmt.Sprintf("%+v: %s", f, b))
	}
	return true
}

// reopen opens the store again on the same mount, which shows from its cache what the disk may not have, and writes the newest payload
// once more. A file system that has shut itself down can not be opened, and gives no wrong answer either.
func (sum *sick) reopen(t *testing.T, v *volume, f Fault, s subject, old keeper, w writers) keeper {
	t.Helper()
	must(t, old.close())
	kp, err := s.open(v.store())
	if err == nil {
		w.keeper = kp
		sum.count(f, s, w.write(t.Context(), "d/a", 4))
		return kp
	}
	if _, dead := os.Stat(v.store()); !errors.Is(dead, unix.EIO) {
		sum.broken = append(sum.broken, fmt.Sprintf("%+v: opening again: %v", f, err))
	}
	return nil
}

// afterPowerCut mounts what a disk held, and judges it.
func afterPowerCut(t *testing.T, k kind, s subject, image string, l *ledger) []string {
	t.Helper()
	v := newVolume(t, k)
	v.file = image
	if err := v.mount(); err != nil {
		return []string{err.Error()}
	}
	kp, broken := inspect(s, v.store(), l)
	if kp != nil {
		if err := w1(kp); err != nil {
			broken = append(broken, fmt.Sprintf("writing again: %v", err))
		}
		must(t, kp.close())
	}
	must(t, v.unmount())
	return broken
}

// w1 writes what a recovered store must take.
func w1(kp keeper) error { return kp.put(context.Background(), "d/a", 1000) }

func syncfs(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Syncfs(fd)
}

// failEach fails each write and each flush that three Puts cause, one a disk.
func failEach(t *testing.T, k kind, s subject, most int) (sum sick) {
	t.Helper()
	for _, reopen := range []bool{false, true} {
		for _, flush := range []bool{false, true} {
			for n := 1; n <= most && failOnce(t, k, s, Fault{Flush: flush, Nth: n}, reopen, &sum); n++ {
				if flush {
					sum.flushes++
				} else {
					sum.writes++
				}
			}
		}
	}
	return sum
}

// D6: the disk fails one write, or one flush, and is good ever after. Put answers with a new file, or with an error; what it acknowledges
// is on the disk, and what it says was not written never appears. Each write and flush that three Puts cause is the one that fails; the store is used on, and opened
// again on the same mount, which shows from its cache what the disk may not have.
func TestDiskThatFailsOnceIsNotBelieved(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	eachKind(t, []kind{ext4, xfs, btrfs}, func(t *testing.T, k kind) {
		sum := failEach(t, k, ours(), figure(3, 1000, 1000))
		for _, broken := range sum.broken {
			t.Error(broken)
		}
		rest := fmt.Sprintf("writes=%d flushes=%d acknowledged=%d refused=%d lost=%d", sum.writes, sum.flushes, sum.acknowledged, sum.refused, len(sum.broken))
		report(t, "D6."+k.name, "faults", sum.cases, figure(2, 10, 10), rest, len(sum.broken) == 0)
	})
}

// D6, the other way round: the harness finds what a writer loses that repeats a failed fsync of the same file, and believes the second.
func TestFailingDiskFindsTheRepeatedFsync(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	eachKind(t, []kind{ext4, xfs}, func(t *testing.T, k kind) {
		sum := failEach(t, k, stubborn(), figure(4, 1000, 1000))
		rest := fmt.Sprintf("acknowledged=%d refused=%d lossy=%d", sum.acknowledged, sum.refused, sum.lossy)
		report(t, "D6."+k.name+".repeated-fsync", "faults", sum.cases, 1, rest, sum.lossy > 0)
	})
}
