// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
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
	even := evened(turns)
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

// The pace is the mean of what the piece took the second time, at each look.
func TestPaceIsTheMean(t *testing.T) {
	// A look that is cold takes long, and is not counted: 1 and 3 are.
	times := []time.Duration{100, 101, 200, 203}
	now := func() (time.Duration, error) {
		at := times[0]
		times = times[1:]
		return at, nil
	}
	tick, ended := make(chan time.Time), make(chan struct{})
	go func() {
		tick <- time.Time{}
		close(ended)
	}()
	got, err := looks(now, tick, ended)
	if err != nil || got != 2 || len(times) != 0 {
		t.Errorf("the pace is %d, %v, with %d times left, want 2, and all read", got, err, len(times))
	}
}

// A clock that can't be read is an error, not a pace.
func TestPaceWithoutClock(t *testing.T) {
	failed := errors.New("failed")
	for fails := range 2 {
		n := -1
		_, err := looks(func() (time.Duration, error) {
			if n++; n == fails {
				return 0, failed
			}
			return 1, nil
		}, nil, nil)
		if !errors.Is(err, failed) {
			t.Errorf("call %d failed: the error is %v, want it to wrap that", fails, err)
		}
	}
}

// The process is this program, asked for by name; what it says is a time of a processor.
func TestPaceOfThisMachine(t *testing.T) {
	p, err := newPace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	took, err := p.end()
	if err != nil || took <= 0 {
		t.Errorf("a piece takes %v, %v, want a time", took, err)
	}
}

// TestMain is the process of the pace, too.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-child="+paceKeeper) {
		if err := keepPace(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
