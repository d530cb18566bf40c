// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// get compares a Get of 64 KiB that are in the page cache with reading as much from a file, and with reading and hashing it: who
// wants to know that what he reads is whole has to do that much.
func (b *bench) get(ctx context.Context, _ time.Duration) (missed bool, err error) {
	const size, rounds, limit = 64 << 10, 1000, 80 * time.Microsecond
	payload := make([]byte, size)
	b.fresh(payload)
	if err := b.store.Put(ctx, "get", payload); err != nil {
		return false, err
	}
	if err := b.rawPut("get", payload); err != nil {
		return false, err
	}
	var ours, plain, hashed []time.Duration
	for range rounds {
		began := time.Now()
		if _, err := b.store.Get(ctx, "get"); err != nil {
			return false, err
		}
		ours = append(ours, time.Since(began))
		began = time.Now()
		data, err := b.rawGet("get", size)
		if err != nil {
			return false, err
		}
		plain = append(plain, time.Since(began))
		_ = sha256.Sum256(data)
		hashed = append(hashed, time.Since(began))
	}
	got, read, checked := median(ours), median(plain), median(hashed)
	ratio := float64(got) / float64(checked)
	missed = line("get.64KiB.hashed", micro(got), micro(checked), ratio, 1.5, ratio <= 1.5)
	bound := max(limit, checked*5/4) // on a machine that hashes more slowly
	ratio = float64(got) / float64(bound)
	missed = line("get.64KiB", micro(got), micro(bound), ratio, 1, ratio <= 1) || missed
	fmt.Printf("  a plain read takes %s, Get %.1f times that\n", micro(read), float64(got)/float64(read))
	return missed, nil
}

func (b *bench) rawGet(name string, size int) ([]byte, error) {
	fd, err := unix.Openat(b.raw, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	data := make([]byte, size+1)
	n, err := unix.Read(fd, data)
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes, want %d", n, size)
	}
	return data[:max(n, 0)], err
}

// slot measures the alternative for small hot state: two slots of 4 KiB in one file, of which the older one is overwritten and
// synced. It has no bar: docs/checkpoint.md says what follows from it.
func (b *bench) slot(ctx context.Context, _ time.Duration) (missed bool, err error) {
	const size, rounds = 4096, 300
	fd, err := unix.Openat(b.raw, "slots", unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	page := make([]byte, size)
	var slots, puts []time.Duration
	for i := range rounds {
		b.fresh(page)
		began := time.Now()
		if _, err := unix.Pwrite(fd, page, int64(i%2)*size); err != nil {
			return false, err
		}
		if err := unix.Fdatasync(fd); err != nil {
			return false, err
		}
		slots = append(slots, time.Since(began))
		began = time.Now()
		if err := b.store.Put(ctx, "hot", page[:1<<10]); err != nil {
			return false, err
		}
		puts = append(puts, time.Since(began))
	}
	fmt.Printf("  a Put of 1 KiB takes %s, a slot overwritten in place %s\n", micro(median(puts)), micro(median(slots)))
	return false, nil
}
