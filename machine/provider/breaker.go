// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"sync"
	"time"
)

// BreakerOptions say when a provider is left alone. The zero value is safe.
type BreakerOptions struct {
	// Failures in a row open the breaker. Zero and less is 5.
	Failures int
	// Open is how long it stays open before one call is let through to try. Zero and less is 30 seconds.
	Open time.Duration
}

// Breaker leaves a provider alone that fails. After so many [Unavailable] or [Internal] errors in a row, of any methods, calls fail at once as
// Unavailable, with After, and have no effect. Then one call, a Delete like any other, is let through: if it is answered all calls are again, else it
// is as before. A call that does not come back is followed by another one after the same time.
//
// A call that its caller has cancelled says nothing, nor do [InvalidConfig], [NotSupported] and [RateLimited] or a Plan, Validate or Capacity that
// succeeds: whatever made the instances need not have been asked.
func Breaker(p Provider, o BreakerOptions) Provider {
	p = orAbsent(p)
	if o.Failures <= 0 {
		o.Failures = 5
	}
	if o.Open <= 0 {
		o.Open = 30 * time.Second
	}
	b := &breaker{options: o}
	return wrapped{p, b.around}
}

type breaker struct {
	options BreakerOptions

	mu       sync.Mutex
	failures int
	last     error
	until    time.Time // zero while it is closed; else when a call is let through
	probe    int       // counts those that were
}

// verdict is what the end of a call says of the provider.
type verdict int

const (
	silent verdict = iota
	answered
	failed
)

func (b *breaker) around(ctx context.Context, method string, call func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return Errorf(Unavailable, "%s was not called: %w", method, err)
	}
	probe, err := b.admit(method)
	if err != nil {
		return err
	}
	err = call(ctx)
	b.report(probe, err, judge(ctx, method, err))
	return err
}

func judge(ctx context.Context, method string, err error) verdict {
	switch known(ClassOf(err)) {
	case "":
		if method == plan || method == validate || method == capacity {
			return silent
		}
	case InvalidConfig, NotSupported, RateLimited:
		return silent
	case Unavailable, Internal:
		if errors.Is(ctx.Err(), context.Canceled) {
			return silent
		}
		return failed
	}
	return answered
}

// admit lets a call through, as a probe if the number is not 0.
func (b *breaker) admit(method string) (probe int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.IsZero() {
		return 0, nil
	}
	now := time.Now()
	if after := b.until.Sub(now); after > 0 {
		err := Errorf(Unavailable, "%s was not called: %d calls in a row have failed, the last with: %v", method, b.failures, b.last)
		err.After = after
		return 0, err
	}
	b.until = now.Add(b.options.Open)
	b.probe++
	return b.probe, nil
}

func (b *breaker) report(probe int, err error, v verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if open := !b.until.IsZero(); open != (probe > 0) || open && probe != b.probe {
		return // it was let through before the breaker was opened or closed
	}
	switch v {
	case answered:
		b.failures, b.last, b.until = 0, nil, time.Time{}
	case failed:
		b.failures, b.last = b.failures+1, err
		if probe > 0 || b.failures >= b.options.Failures {
			b.until = time.Now().Add(b.options.Open)
		}
	case silent:
		if probe > 0 {
			b.until = time.Now()
		}
	}
}
