// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"math"
	"sync"
	"time"
)

// RateLimitOptions are the pace of calls. The zero value is a slow one.
type RateLimitOptions struct {
	// Rate is calls per second. What is not positive and finite is 5.
	Rate float64
	// Burst is how many calls may come at once after a pause. Zero and less is 10.
	Burst int
	// Wait is the longest that a call waits. Zero and less is 10 seconds. See [RateLimit].
	Wait time.Duration
}

func (o RateLimitOptions) defaulted() RateLimitOptions {
	if !(o.Rate > 0) || math.IsInf(o.Rate, 1) {
		o.Rate = 5
	}
	if o.Burst <= 0 {
		o.Burst = 10
	}
	if o.Wait <= 0 {
		o.Wait = 10 * time.Second
	}
	return o
}

// RateLimit has calls wait for their turn, in the order in which they came. After a [RateLimited] error none goes through until its After has
// passed (without one the first backoff of the class, and never more than ten minutes), and then one at a time.
//
// A call whose turn would come after the end of its ctx, or later than the longest wait, fails at once as RateLimited, with After, and has no effect.
func RateLimit(p Provider, o RateLimitOptions) Provider {
	p = orAbsent(p)
	o = o.defaulted()
	b := &bucket{options: o, turn: make(chan struct{}, 1), tokens: float64(o.Burst), at: time.Now()}
	return wrapped{p, b.around}
}

// bucket is a token bucket. Whoever has the turn is the next to take a token.
type bucket struct {
	options RateLimitOptions
	turn    chan struct{}

	mu      sync.Mutex
	waiting int
	tokens  float64
	at      time.Time // when tokens were as many; in the future while everything is held back
}

func (b *bucket) around(ctx context.Context, method string, call func(context.Context) error) error {
	if err := b.wait(ctx, method); err != nil {
		return err
	}
	err := call(ctx)
	if ClassOf(err) == RateLimited {
		b.hold(AfterOf(err))
	}
	return err
}

// wait returns nil when the call may be made.
func (b *bucket) wait(ctx context.Context, method string) error {
	if err := ctx.Err(); err != nil {
		return Errorf(Unavailable, "%s was not called: %w", method, err)
	}
	if err := b.enter(ctx, method); err != nil {
		return err
	}
	began := time.Now()
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return b.leave(Errorf(Unavailable, "%s was not called while it waited for its turn: %w", method, ctx.Err()))
	}
	defer func() { <-b.turn }()
	for {
		after, held := b.take()
		if after == 0 {
			return nil
		}
		if held && time.Since(began)+after > b.options.Wait {
			return b.leave(limited(method, after))
		}
		timer := time.NewTimer(after)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return b.leave(Errorf(Unavailable, "%s was not called while it waited for its turn: %w", method, ctx.Err()))
		}
	}
}

func limited(method string, after time.Duration) error {
	err := Errorf(RateLimited, "%s was not called: its turn is in %v", method, after)
	err.After = after
	return err
}

// enter puts a call into the queue, unless it would wait there for too long.
func (b *bucket) enter(ctx context.Context, method string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	after := b.after(now, b.waiting+1)
	if end, ok := ctx.Deadline(); after > b.options.Wait || ok && after > end.Sub(now) {
		return limited(method, after)
	}
	b.waiting++
	return nil
}

// leave takes a call out of the queue that is not made.
func (b *bucket) leave(why error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting--
	return why
}

// take takes a token and its call out of the queue, or says when there is one, and whether that is because everything is held back.
func (b *bucket) take() (after time.Duration, held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	after = b.after(now, 1)
	if after == 0 {
		b.tokens--
		b.waiting--
	}
	return after, b.at.After(now)
}

// after fills the bucket and says when there will be that many tokens.
func (b *bucket) after(now time.Time, tokens int) time.Duration {
	if passed := now.Sub(b.at); passed > 0 {
		b.tokens = min(b.tokens+passed.Seconds()*b.options.Rate, float64(b.options.Burst))
		b.at = now
	}
	held := max(b.at.Sub(now), 0)
	missing := float64(tokens) - b.tokens
	if missing <= 0 {
		return held
	}
	nanos := math.Ceil(missing / b.options.Rate * float64(time.Second))
	return held + time.Duration(min(nanos, math.MaxInt64/4))
}

// hold lets nothing through for a while, and then one call.
func (b *bucket) hold(after time.Duration) {
	if after <= 0 {
		after = RateLimited.Backoff(1)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := time.Now().Add(min(after, longest)); until.After(b.at) {
		b.at, b.tokens = until, 1
	}
}
