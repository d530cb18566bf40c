// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"slices"
	"testing"
	"time"
)

// times are those of writes on a machine that gets slower or faster with each by a share.
func times(first time.Duration, drift float64) figures[time.Duration] {
	var all figures[time.Duration]
	for took := float64(first); len(all) < 50; took *= 1 + drift {
		all = append(all, time.Duration(took))
	}
	return all
}

// TestOverheadIsNotTheMachines shows that the verdict on the policy is on what the policy costs, whatever the machine does between the blocks of
// writes and within them.
func TestOverheadIsNotTheMachines(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		name                     string
		on, onPace, off, offPace time.Duration
		drift                    float64
		good                     bool
		ratio                    string
	}{
		{"cheap", 22 * ms, 20 * ms, 20 * ms, 20 * ms, 0, true, "1.100"},
		{"dear", 26 * ms, 20 * ms, 20 * ms, 20 * ms, 0, false, "1.300"},
		{"cheap, while the machine is slow", 33 * ms, 30 * ms, 20 * ms, 20 * ms, 0, true, "1.100"},
		{"dear, while the machine is fast", 26 * ms, 20 * ms, 30 * ms, 30 * ms, 0, false, "1.300"},
		{"cheap, on a machine that slows down", 22 * ms, 20 * ms, 10 * ms, 10 * ms, 0.02, true, "1.100"},
		{"dear, for a write that is faster than the pace", 26 * ms, 25 * ms, 16 * ms, 20 * ms, 0, false, "1.300"},
		{"cheap, for a write that is slower than the pace", 33 * ms, 20 * ms, 30 * ms, 20 * ms, 0, true, "1.100"},
		{"dear, on a machine that speeds up", 26 * ms, 20 * ms, 90 * ms, 90 * ms, -0.02, false, "1.300"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := round{
				on:  turns{guarded: times(row.on, row.drift), pace: times(row.onPace, row.drift)},
				off: turns{guarded: times(row.off, row.drift), pace: times(row.offPace, row.drift)},
			}
			l := overhead("write", []round{r, r, r}, 50)
			if l.good != row.good || l.ratio != row.ratio {
				t.Errorf("got %s, good: %t; want %s, %t", l.ratio, l.good, row.ratio, row.good)
			}
		})
	}
	if overhead("write", nil, 50).good {
		t.Error("a write that was never measured is within the bar")
	}
}

// TestPairsAreWriteByWrite shows that the ratio is not one of two medians: more than half of the writes fall into a slow time.
func TestPairsAreWriteByWrite(t *testing.T) {
	var r round
	for i := range 100 {
		base := time.Millisecond
		if i <= 50 {
			base *= 10
		}
		r.on.pace, r.on.guarded = append(r.on.pace, base), append(r.on.guarded, base+base/10)
	}
	r.off.guarded, r.off.pace = r.on.pace, r.on.pace
	r.on.pace = slices.Clone(r.on.pace)
	r.on.pace[0], r.on.pace[1] = time.Millisecond, time.Millisecond // two writes for the pace escaped it
	if got := overhead("write", []round{r}, 100); got.ratio != "1.100" {
		t.Errorf("got %s, want 1.100", got.ratio)
	}
}
