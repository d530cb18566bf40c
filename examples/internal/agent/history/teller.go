// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"time"

	"github.com/belayproject/belay/internal/backoff"
)

// The pauses of a Teller, and how long one entry may take, and what is left when a restart waits.
const (
	retryMin     = time.Second
	retryMax     = 2 * time.Minute
	sendTimeout  = 10 * time.Second
	flushTimeout = time.Second
)

// A Teller passes the entries of a journal on, each at least once. Starts, which may be many, it leaves out. Make it with [NewTeller].
type Teller struct {
	j    *Journal
	send func(context.Context, Entry) error
	turn chan struct{} // held by who sends
}

// NewTeller returns one that passes entries to send, which must end with its context and take the same entry twice.
func NewTeller(j *Journal, send func(context.Context, Entry) error) *Teller {
	return &Teller{j: j, send: send, turn: make(chan struct{}, 1)}
}

// Run passes entries on until ctx ends, those that an earlier process left among them.
func (t *Teller) Run(ctx context.Context) {
	retry := backoff.Backoff{First: retryMin, Most: retryMax}
	for ctx.Err() == nil {
		if err := t.pass(ctx); err == nil {
			retry.Reset()
			t.pause(ctx, 0)
			continue
		}
		t.pause(ctx, retry.Next())
	}
}

// pause waits for something new, the end of ctx, or d unless that is 0.
func (t *Teller) pause(ctx context.Context, d time.Duration) {
	var again <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		again = timer.C
	}
	select {
	case <-ctx.Done():
	case <-again:
	case <-t.j.changed:
	}
}

// Flush passes on what is new, for at most a second: what waits for it is a restart. What is left then stays on record for the next process.
func (t *Teller) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	return t.pass(ctx)
}

// pass sends what was not sent yet.
func (t *Teller) pass(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r := t.j.snapshot()
	told := r.Told
	var err error
	for _, e := range r.Entries {
		if e.N <= r.Told {
			continue
		}
		if e.Kind != Started {
			if err = t.sendOne(ctx, e); err != nil {
				break
			}
		}
		told = e.N
	}
	if told == r.Told {
		return err
	}
	return errors.Join(err, t.j.told(ctx, told))
}

func (t *Teller) sendOne(ctx context.Context, e Entry) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return t.send(ctx, e)
}
