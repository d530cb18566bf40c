// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/belayproject/belay/checkpoint"
)

func main() {
	dir := flag.String("dir", "", "directory on the disk to measure on; empty = the first of the system's and the user's temporary places that is durable")
	budget := flag.Duration("budget", 40*time.Second, "time for all measurements of Put together")
	flag.Parse()
	short, err := run(context.Background(), *dir, *budget)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench checkpoint:", err)
		os.Exit(2)
	case short:
		os.Exit(1)
	}
}

// run measures everything, and reports whether a bar was missed.
func run(ctx context.Context, dir string, budget time.Duration) (short bool, err error) {
	base, err := place(dir)
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(base)
	b, err := newBench(base)
	if err != nil {
		return false, err
	}
	defer b.close()
	for _, f := range []func(context.Context, time.Duration) (bool, error){b.sizes, b.concurrent, b.unchanged, b.allocations, b.fsyncs, b.get, b.slot} {
		missed, err := f(ctx, budget)
		if err != nil {
			return false, err
		}
		short = short || missed
	}
	return short, nil
}

// place makes a directory to work in. Where none was given, one on a disk is taken before one in memory.
func place(dir string) (string, error) {
	places := []string{dir}
	if dir == "" {
		places = []string{os.TempDir(), "/var/tmp", "."}
	}
	for _, p := range places {
		base, err := os.MkdirTemp(p, "belay-bench-")
		if err != nil {
			continue
		}
		if s, err := checkpoint.Open(base+"/probe", checkpoint.Options{Ballast: -1}); err == nil {
			durable := s.Durable()
			if err := s.Close(); err != nil {
				return "", err
			}
			if durable || dir != "" {
				return base, nil
			}
		}
		if err := os.RemoveAll(base); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("none of %q is on ext4, xfs or btrfs: name one with -dir", places)
}

// line prints a figure, and reports whether it misses its bar.
func line(name, ours, peer string, ratio, bar float64, good bool) (missed bool) {
	verdict := "ok"
	if !good {
		verdict = "SHORT"
	}
	fmt.Printf("bench checkpoint.%s ours=%s peer=%s ratio=%.2f bar=%.2f %s\n", name, ours, peer, ratio, bar, verdict)
	return !good
}
