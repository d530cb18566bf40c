// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	"github.com/belayproject/belay/internal/backoff"
)

// How long is waited after refusals: doubling from the first to the most.
const (
	overloadFirst  = time.Second
	overloadMost   = time.Minute
	budgetFirst    = 10 * time.Second
	budgetMost     = 2 * time.Minute
	retryAfterMost = 5 * time.Minute // a server's own wish is followed up to here
)

// A schedBackoff says when to ask again after refusals. A ticket's number stands for when it was given, so that answers which were on
// their way together count as one refusal, whatever the clock says.
type schedBackoff struct {
	first, most time.Duration
	steps       int // refusals since the last acceptance
	until       time.Time
	raised      uint64 // the last ticket that had been given when it was raised
	reason      Reason // of the last refusal
}

// raise takes in a refusal of a ticket, where last is the newest one given. It reports whether the refusal is a new one, not one
// more of those that were asked for before it was known.
func (b *schedBackoff) raise(now time.Time, ticket, last uint64, retryAfter time.Duration, random float64) bool {
	fresh := ticket > b.raised
	if fresh {
		wait := backoff.After(b.steps, b.first, b.most)
		b.until, b.raised = now.Add(schedJitter(wait, random)), last
		b.steps++
	}
	if wish := now.Add(min(retryAfter, retryAfterMost)); wish.After(b.until) {
		b.until = wish
	}
	return fresh
}

// reset takes in that a ticket was accepted. One from before the refusal shows nothing.
func (b *schedBackoff) reset(ticket uint64) {
	if ticket > b.raised {
		b.steps, b.until = 0, time.Time{}
	}
}

// reopen ends the wait, and remembers the refusals.
func (b *schedBackoff) reopen() { b.until = time.Time{} }

// wait is how long it lasts yet.
func (b *schedBackoff) wait(now time.Time) time.Duration { return max(0, b.until.Sub(now)) }

// schedJitter adds up to a fifth, so that those who were refused together do not come back together, and none too early.
func schedJitter(d time.Duration, random float64) time.Duration {
	return backoff.Jitter(d, 1, 1.2, func() float64 { return random })
}
