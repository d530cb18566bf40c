// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"context"
	"math"
	"math/rand/v2"
	"time"
)

// A Backoff is the delay after failures in a row. It is for one goroutine.
type Backoff struct {
	First, Most time.Duration
	last        time.Duration
}

// Next returns the delay after one more failure: First, then twice the delay before, up to Most.
func (b *Backoff) Next() time.Duration {
	b.last = Next(b.last, b.First, b.Most)
	return b.last
}

// Wait waits for the next delay. It returns false if ctx ends first.
func (b *Backoff) Wait(ctx context.Context) (waited bool) { return Sleep(ctx, b.Next()) }

// Reset is for a success: the next delay is First again.
func (b *Backoff) Reset() { b.last = 0 }

// Next returns the delay that follows last: first if last is 0, and twice last otherwise, but no less than first and no more
// than most.
func Next(last, first, most time.Duration) time.Duration {
	if last > most/2 {
		return most
	}
	return min(max(2*last, first), most)
}

// After returns first, doubled that many times, but no more than most.
func After(doublings int, first, most time.Duration) time.Duration {
	delay := min(first, most)
	for ; doublings > 0 && delay > 0 && delay < most; doublings-- {
		delay = Next(delay, first, most)
	}
	return delay
}

// Jitter returns d times a factor between from and to, drawn evenly by random, which returns a number in [0,1); a nil random
// is [rand.Float64]. Callers that failed together then retry apart. Factors of 0.8 and 1 shorten d by up to a fifth, 1 and 1.2
// lengthen it by as much.
func Jitter(d time.Duration, from, to float64, random func() float64) time.Duration {
	if random == nil {
		random = rand.Float64
	}
	jittered := math.Round(float64(d) * (from + (to-from)*random()))
	if jittered >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(jittered)
}

// Sleep waits for d. It returns false if ctx ends first, and at once if it has ended.
func Sleep(ctx context.Context, d time.Duration) (slept bool) {
	if ctx.Err() != nil || d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
