// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A machine that was half as fast while one side had its turn makes no difference between two sides that are the same; one that asks for twice as much does.
func TestEvenedByPace(t *testing.T) {
	of := func(pace, took time.Duration) burst {
		return burst{
			fleet: []time.Duration{took / 2, took}, own: []time.Duration{took / 8, took / 4}, given: took / 2, pace: pace,
			work: work{"etcd": took.Seconds(), "the API server": 2 * took.Seconds()},
		}
	}
	const us = time.Microsecond
	turns := []*turn{
		{name: "fast", bursts: []burst{of(50*us, 4*time.Second), of(50*us, 4*time.Second)}},
		{name: "slow", bursts: []burst{of(100*us, 8*time.Second), of(100*us, 8*time.Second)}},
		{name: "more", bursts: []burst{of(100*us, 16*time.Second)}},
	}
	even, note := evened(turns)
	if want := "took 100µs[50µs..100µs] of a processor"; !strings.Contains(note, want) {
		t.Errorf("the note is %q, want %q in it", note, want)
	}
	for i, want := range []burst{of(100*us, 8*time.Second), of(100*us, 8*time.Second), of(100*us, 16*time.Second)} {
		for _, got := range even[i].bursts {
			same := slices.Equal(got.fleet, want.fleet) && slices.Equal(got.own, want.own) && got.given == want.given && got.pace == want.pace
			if !same || got.work.total() != want.work.total() {
				t.Errorf("%s: %+v, want %+v", even[i].name, got, want)
			}
		}
	}
	if got := turns[0].bursts[0]; got.fleet[1] != 4*time.Second || got.work.total() != 12 {
		t.Errorf("what was measured has changed: %+v", got)
	}
}

// Without a pace, times are as they were measured.
func TestNoPaceChangesNothing(t *testing.T) {
	even, _ := evened([]*turn{{name: "a", bursts: []burst{{fleet: []time.Duration{7}}}}})
	if got := even[0].bursts[0].fleet[0]; got != 7 {
		t.Errorf("a time is %v, want 7ns", got)
	}
}

// A pace is the time of one piece, however long it lasts.
func TestPaceIsOfOnePiece(t *testing.T) {
	short := newPace().end()
	long := newPace()
	for range 20 {
		<-time.After(often)
	}
	if got := long.end(); short <= 0 || got <= 0 || got > 20*short {
		t.Errorf("a piece took %v, and %v in the mean of many", short, got)
	}
}
