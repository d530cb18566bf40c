// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"testing"
	"time"
)

func TestBackoffDoublesUpToItsMost(t *testing.T) {
	b := schedBackoff{first: time.Second, most: time.Minute}
	for i, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		want := time.Duration(seconds) * time.Second
		b.raise(simStart, uint64(i+1), uint64(i+1), 0, 0)
		if got := b.wait(simStart); got != want {
			t.Errorf("refusal %d: got a wait of %v, want %v", i+1, got, want)
		}
	}
	for i := range uint64(200) {
		b.raise(simStart, 100+i, 100+i, 0, 0)
	}
	if got := b.wait(simStart); got != time.Minute {
		t.Errorf("after many refusals: got a wait of %v, want %v", got, time.Minute)
	}
}

func TestJitterAddsUpToAFifth(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: 10 * time.Second, 0.5: 11 * time.Second, 1: 12 * time.Second} {
		b := schedBackoff{first: 10 * time.Second, most: time.Minute}
		b.raise(simStart, 1, 1, 0, random)
		if got := b.wait(simStart); got != want {
			t.Errorf("got a wait of %v with %v drawn, want %v", got, random, want)
		}
	}
}

func TestServersWishIsFollowedUpToABound(t *testing.T) {
	for wish, want := range map[time.Duration]time.Duration{
		0: time.Second, 300 * time.Millisecond: time.Second, 10 * time.Second: 10 * time.Second, time.Hour: retryAfterMost,
	} {
		b := schedBackoff{first: time.Second, most: time.Minute}
		b.raise(simStart, 1, 1, wish, 0)
		if got := b.wait(simStart); got != want {
			t.Errorf("got a wait of %v when the server says %v, want %v", got, wish, want)
		}
	}
}

// Evictions that were on their way together are one refusal, and what was asked for before it shows nothing after it.
func TestAnswersToOlderTicketsAreOneRefusal(t *testing.T) {
	b := schedBackoff{first: time.Second, most: time.Minute}
	for ticket := range uint64(8) {
		if fresh := b.raise(simStart, ticket+1, 8, 0, 0); fresh != (ticket == 0) {
			t.Errorf("ticket %d of 8 under way: got fresh %v, want only the first to count", ticket+1, fresh)
		}
	}
	b.reset(8)
	if got := b.wait(simStart); got != time.Second || b.steps != 1 {
		t.Errorf("got a wait of %v after %d steps, want 1 s after 1: older tickets change nothing", got, b.steps)
	}
	if b.raise(simStart, 5, 9, 3*time.Second, 0); b.wait(simStart) != 3*time.Second || b.steps != 1 {
		t.Errorf("got a wait of %v after %d steps, want the 3 s that the server asks for, and no step", b.wait(simStart), b.steps)
	}
	if b.reset(9); b.wait(simStart) != 0 || b.steps != 0 {
		t.Errorf("got a wait of %v after %d steps, want none after an acceptance", b.wait(simStart), b.steps)
	}
}
