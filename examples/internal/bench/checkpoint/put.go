// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/checkpoint"
)

// bench holds the store and the directory of the raw protocol, side by side on one disk.
type bench struct {
	store *checkpoint.Store
	raw   int
	count uint64 // makes each payload another one
}

func newBench(base string) (*bench, error) {
	store, err := checkpoint.Open(filepath.Join(base, "store"), checkpoint.Options{})
	if err != nil {
		return nil, err
	}
	raw := filepath.Join(base, "raw")
	if err := os.Mkdir(raw, 0o700); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	fd, err := unix.Open(raw, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &bench{store: store, raw: fd}, nil
}

func (b *bench) close() {
	if err := errors.Join(b.store.Close(), unix.Close(b.raw)); err != nil {
		fmt.Fprintln(os.Stderr, "bench checkpoint:", err)
	}
}

// rawPut is the least that makes a file durable under a name.
func (b *bench) rawPut(name string, payload []byte) error {
	fd, err := unix.Openat(b.raw, "temp", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	for left := payload; len(left) > 0; {
		n, err := unix.Write(fd, left)
		if err != nil {
			return err
		}
		left = left[n:]
	}
	if err := unix.Fsync(fd); err != nil {
		return err
	}
	if err := unix.Close(fd); err != nil {
		return err
	}
	if err := unix.Renameat(b.raw, "temp", b.raw, name); err != nil {
		return err
	}
	return unix.Fsync(b.raw)
}

// fresh makes a payload another one than all before.
func (b *bench) fresh(payload []byte) {
	b.count++
	binary.LittleEndian.PutUint64(payload, b.count)
}

func (b *bench) sizes(ctx context.Context, budget time.Duration) (missed bool, err error) {
	for _, s := range []struct {
		name string
		size int
		bar  float64
	}{{"1KiB", 1 << 10, 1.20}, {"64KiB", 64 << 10, 1.25}, {"1MiB", 1 << 20, 1.60}} {
		ours, peer, n, err := b.pairs(ctx, s.name, s.size, budget/3)
		if err != nil {
			return false, err
		}
		ratio := float64(ours) / float64(peer)
		missed = line("put."+s.name, micro(ours), micro(peer), ratio, s.bar, ratio <= s.bar) || missed
		fmt.Printf("  medians of %d pairs\n", n)
	}
	return missed, nil
}

// pairs measures both in turns, and which goes first changes, so that the load of the machine and of the disk hits both.
func (b *bench) pairs(ctx context.Context, name string, size int, budget time.Duration) (ours, peer time.Duration, n int, err error) {
	const most = 4000
	payload := make([]byte, size)
	stream := "put-" + strconv.Itoa(size)
	sides := []func() error{
		func() error { return b.store.Put(ctx, stream, payload) },
		func() error { return b.rawPut(stream, payload) },
	}
	var took [2][]time.Duration
	deadline := time.Now().Add(budget)
	for n = 0; n < most && time.Now().Before(deadline); n++ {
		for i := range sides {
			side := (i + n) % 2
			b.fresh(payload)
			began := time.Now()
			if err := sides[side](); err != nil {
				return 0, 0, n, fmt.Errorf("%s: %w", name, err)
			}
			took[side] = append(took[side], time.Since(began))
		}
	}
	return median(took[0]), median(took[1]), n, nil
}

// concurrent compares the rate of 64 streams at once with that of one.
func (b *bench) concurrent(ctx context.Context, _ time.Duration) (missed bool, err error) {
	const streams, rounds = 64, 20
	var ratios []float64
	var serialRate, togetherRate float64
	for range 5 {
		serial, err := b.rate(ctx, 1, streams*2)
		if err != nil {
			return false, err
		}
		together, err := b.rate(ctx, streams, rounds)
		if err != nil {
			return false, err
		}
		serialRate, togetherRate = serial, together
		ratios = append(ratios, together/serial)
	}
	slices.Sort(ratios)
	ratio := ratios[len(ratios)/2]
	return line("put.64streams", fmt.Sprintf("%.0f/s", togetherRate), fmt.Sprintf("%.0f/s", serialRate), ratio, 3, ratio >= 3), nil
}

// rate gives the Puts of 1 KiB in a second of so many writers, each to a stream of its own.
func (b *bench) rate(ctx context.Context, writers, each int) (float64, error) {
	var wg sync.WaitGroup
	errs := make([]error, writers)
	began := time.Now()
	for w := range writers {
		wg.Go(func() {
			payload := make([]byte, 1<<10)
			for i := range each {
				binary.LittleEndian.PutUint64(payload, uint64(began.UnixNano())+uint64(i))
				if err := b.store.Put(ctx, "many/s"+strconv.Itoa(w), payload); err != nil {
					errs[w] = err
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(writers*each) / time.Since(began).Seconds(), errors.Join(errs...)
}

// unchanged compares a Put of the newest payload with the raw protocol, which does not know it.
func (b *bench) unchanged(ctx context.Context, _ time.Duration) (missed bool, err error) {
	payload := make([]byte, 64<<10)
	var ours, peer []time.Duration
	for range 200 {
		began := time.Now()
		if err := b.store.Put(ctx, "same", payload); err != nil {
			return false, err
		}
		ours = append(ours, time.Since(began))
		began = time.Now()
		if err := b.rawPut("same", payload); err != nil {
			return false, err
		}
		peer = append(peer, time.Since(began))
	}
	ratio := float64(median(ours)) / float64(median(peer))
	return line("put.unchanged.64KiB", micro(median(ours)), micro(median(peer)), ratio, 1, ratio <= 1), nil
}

// allocations counts what one Put of 64 KiB takes from the heap, in objects.
func (b *bench) allocations(ctx context.Context, _ time.Duration) (missed bool, err error) {
	const puts, bar = 200, 12
	payload := make([]byte, 64<<10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range puts {
		b.fresh(payload)
		if err := b.store.Put(ctx, "allocations", payload); err != nil {
			return false, err
		}
	}
	runtime.ReadMemStats(&after)
	each := float64(after.Mallocs-before.Mallocs) / puts
	return line("put.allocations", fmt.Sprintf("%.1f", each), strconv.Itoa(bar), each/bar, 1, each <= bar), nil
}

// fsyncs has the package's own test count them, as only that sees the store's system calls.
func (b *bench) fsyncs(ctx context.Context, _ time.Duration) (missed bool, err error) {
	const test, pkg = "TestPutCostsTwoFsyncsAndAnUnchangedOneNone", "github.com/belayproject/belay/checkpoint"
	out, err := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-run", "^"+test+"$", pkg).CombinedOutput()
	found := regexp.MustCompile(`fsyncs: (\d+) a Put, (\d+) an unchanged Put`).FindSubmatch(out)
	if err != nil || found == nil {
		return false, fmt.Errorf("counting fsyncs by %s: %w\n%s", test, err, out)
	}
	put, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		return false, err
	}
	missed = line("put.fsyncs", string(found[1]), "2", put/2, 1, put == 2)
	fmt.Printf("bench checkpoint.put.unchanged.fsyncs ours=%s bar=0 %s\n", found[2], map[bool]string{true: "ok", false: "SHORT"}[string(found[2]) == "0"])
	return missed || string(found[2]) != "0", nil
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func micro(d time.Duration) string { return fmt.Sprintf("%.0fµs", float64(d.Nanoseconds())/1000) }
