// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/backoff"
)

// A footprint is what a process holds of memory, in MiB.
type footprint struct{ anonymous, resident float64 }

// footprintOf reads it from the kernel.
func footprintOf(pid int) (f footprint, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return f, err
	}
	for line := range strings.Lines(string(raw)) {
		words := strings.Fields(line)
		if len(words) != 3 || words[2] != "kB" {
			continue
		}
		n, err := strconv.ParseFloat(words[1], 64)
		if err != nil {
			return f, err
		}
		switch words[0] {
		case "Anonymous:":
			f.anonymous = n / 1024
		case "Rss:":
			f.resident = n / 1024
		}
	}
	return f, nil
}

// A spell is what processes took in some time: the most memory, and the share of a processor.
type spell struct {
	most []footprint
	used []float64
}

// watched looks at processes for some time.
func watched(ctx context.Context, window time.Duration, pids ...int) (s spell, err error) {
	s.most, s.used = make([]footprint, len(pids)), make([]float64, len(pids))
	before := make([]float64, len(pids))
	for i, pid := range pids {
		if before[i], err = runner.ProcessTime(strconv.Itoa(pid)); err != nil {
			return s, err
		}
	}
	from := time.Now()
	for time.Since(from) < window {
		for i, pid := range pids {
			f, err := footprintOf(pid)
			if err != nil {
				return s, err
			}
			s.most[i].anonymous, s.most[i].resident = max(s.most[i].anonymous, f.anonymous), max(s.most[i].resident, f.resident)
		}
		if !backoff.Sleep(ctx, 2*time.Second) {
			return s, ctx.Err()
		}
	}
	for i, pid := range pids {
		now, err := runner.ProcessTime(strconv.Itoa(pid))
		if err != nil {
			return s, err
		}
		s.used[i] = (now - before[i]) / time.Since(from).Seconds()
	}
	return s, nil
}
