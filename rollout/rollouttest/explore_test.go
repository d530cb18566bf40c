// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/rollout/rollouttest"
)

// R-RO-11, R-RO-19, R-RO-20: caps, one commit per attempt, and no commit after an acknowledged abort or pause, in every state that these worlds can
// reach; and from every one of them, also a closed one, there is a way to rest, and to a commit of each node as long as there are attempts.
func TestTheProtocolHolds(t *testing.T) {
	for _, c := range []struct {
		name string
		o    rollouttest.Options
	}{
		{"three nodes one at a time", rollouttest.Options{Nodes: 3, Cap: 1, Attempts: 3}},
		{"two of three", rollouttest.Options{Nodes: 3, Cap: 2, Attempts: 3}},
		{"two of three with more attempts", rollouttest.Options{Nodes: 3, Cap: 2, Attempts: 4}},
		{"abort and resume", rollouttest.Options{Nodes: 2, Cap: 1, Attempts: 3, Abort: true}},
		{"pause and continue", rollouttest.Options{Nodes: 2, Cap: 1, Attempts: 2, Pause: true}},
		{"a pause in an abort", rollouttest.Options{Nodes: 2, Cap: 1, Attempts: 1, Abort: true, Pause: true}},
		{"one of each zone", rollouttest.Options{Nodes: 3, Cap: 2, PerZone: 1, Attempts: 3}},
		{"retries", rollouttest.Options{Nodes: 2, Cap: 1, Attempts: 3, Retry: true, Abort: true}},
		{"shadows are lost", rollouttest.Options{Nodes: 2, Cap: 1, Attempts: 3, Losses: 1}},
		{"shadows are deleted by hand", rollouttest.Options{Nodes: 2, Cap: 1, Attempts: 2, Losses: 2, Hand: true, Abort: true}},
		{"every phase", rollouttest.Options{Nodes: 2, Cap: 1, Attempts: 2, Phases: true}},
		{"every phase and a hand", rollouttest.Options{Nodes: 1, Cap: 1, Attempts: 2, Phases: true, Losses: 1, Hand: true, Retry: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			part := raceshare.Step(t) > 1
			if part {
				c.o.Limit = 10_000 // some worlds are smaller, and walked to their end
			}
			r, err := rollouttest.Explore(t.Context(), c.o)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d states", r.States)
			if r.Violation != "" || !r.Complete && !part || r.Stuck+r.Starved > 0 {
				t.Errorf("got %q, complete %t, %d states without a way to rest, %d without a way for some node; want no violation, all states, none:\n%s",
					r.Violation, r.Complete, r.Stuck, r.Starved, strings.Join(r.Trace, "\n"))
			}
		})
	}
}

// Each rule is needed: without it the shortest way to break a promise is found.
func TestEachRuleIsNeeded(t *testing.T) {
	small := rollouttest.Options{Nodes: 3, Cap: 1, Attempts: 3}
	lossy := rollouttest.Options{Nodes: 2, Cap: 1, Attempts: 3, Losses: 1}
	aborted := rollouttest.Options{Nodes: 2, Cap: 1, Attempts: 3, Abort: true}
	for _, c := range []struct {
		without rollouttest.Without
		o       rollouttest.Options
		breaks  string
		steps   int // at most
	}{
		{rollouttest.LedgerCAS, small, "I1", 6},
		{rollouttest.CommitCAS, small, "I1", 8},
		{rollouttest.AttemptMatch, small, "I1", 13},
		{rollouttest.Facts, small, "I1", 7},
		{rollouttest.EpochMark, lossy, "I1", 9},
		{rollouttest.Finalizer, lossy, "I1", 8},
		{rollouttest.Revocation, aborted, "I2", 5},
	} {
		t.Run(string(c.without), func(t *testing.T) {
			c.o.Without = c.without
			r, err := rollouttest.Explore(t.Context(), c.o)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(r.Violation, c.breaks) || len(r.Trace) > c.steps {
				t.Errorf("got %q in %d steps, want %s broken in %d at most:\n%s", r.Violation, len(r.Trace), c.breaks, c.steps, strings.Join(r.Trace, "\n"))
			}
			t.Logf("%d states: %s: %s", r.States, r.Violation, strings.Join(r.Trace, "; "))
		})
	}
}

// More than a million states of one world: two of three nodes at a time, five attempts, aborted and resumed at any time. It prints how many there were,
// how long it took, and how many broke a rule; that is to be 60 s at most on an idle machine. What a busy one takes proves nothing.
func TestAMillionStates(t *testing.T) {
	const many = 1_100_000
	from := time.Now()
	r, err := rollouttest.Explore(t.Context(), rollouttest.Options{Nodes: 3, Cap: 2, Attempts: 5, Abort: true, Limit: raceshare.Of(t, many)})
	if err != nil {
		t.Fatal(err)
	}
	violations := 0
	if r.Violation != "" {
		violations++ // the walk ends with the first
	}
	t.Logf("explorer: %d states in %.1f s, %d violations", r.States, time.Since(from).Seconds(), violations)
	if violations > 0 || r.States < raceshare.Of(t, many) {
		t.Errorf("got %q in %d states, want no violation, and %d states:\n%s", r.Violation, r.States, raceshare.Of(t, many), strings.Join(r.Trace, "\n"))
	}
}

// largestEnv lets the largest world be walked to its end.
const largestEnv = "BELAY_ROLLOUT_WORLD"

// The largest world: one of two nodes at a time, three attempts, every phase, retries, aborts and pauses, and a hand that deletes shadows twice. It is
// walked for as far as a test should take; make rollout-proof walks it to its end.
func TestTheLargestWorld(t *testing.T) {
	o := rollouttest.Options{
		Nodes: 2, Cap: 1, Attempts: 3, Phases: true, Losses: 2, Hand: true, Retry: true, Abort: true, Pause: true, Limit: raceshare.Of(t, 100_000),
	}
	whole := os.Getenv(largestEnv) != ""
	if whole {
		o.Limit = 10_000_000
	}
	from := time.Now()
	r, err := rollouttest.Explore(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the largest world: %d states in %.1f s, complete %t", r.States, time.Since(from).Seconds(), r.Complete)
	if r.Violation != "" || r.Stuck+r.Starved > 0 || whole && !r.Complete {
		t.Errorf("got %q, complete %t, %d states without a way to rest, %d without a way for some node:\n%s",
			r.Violation, r.Complete, r.Stuck, r.Starved, strings.Join(r.Trace, "\n"))
	}
}
