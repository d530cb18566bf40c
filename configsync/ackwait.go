// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// streamWait is the record of how long a config on trial waits for its acknowledgement.
const streamWait = "acknowledgement"

// An ackRecord is how long an assignment has waited. The sum of monotonic times holds over boots.
type ackRecord struct {
	Assignment string        `json:"assignment"`
	Waited     time.Duration `json:"waitedNanoseconds"`
	BootID     string        `json:"bootID,omitempty"` // of the last run that waited, for people
}

// An ackWait is a wait in this run.
type ackWait struct {
	assignment string        // that waits; empty: none yet
	before     time.Duration // in the runs before
	from       time.Time     // monotonic: where this run's share begins
}

// sum is how long the assignment waits by now.
func (w ackWait) sum() time.Duration { return w.before + time.Since(w.from) }

// waited is how long an assignment waits, over all its runs. A record that can't be read is none: the wait is longer then.
func (s *Syncer[T]) waited(ctx context.Context, now live[T], assignment string) time.Duration {
	w := now.wait
	if w.assignment == assignment {
		return w.sum()
	}
	w = ackWait{assignment: assignment, from: time.Now()}
	if now.wait.assignment == "" {
		w.before, w.from = s.waitedBefore(ctx, assignment), now.up
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live.epoch == now.epoch {
		s.live.wait = w
	}
	return w.sum()
}

func (s *Syncer[T]) waitedBefore(ctx context.Context, assignment string) time.Duration {
	var r ackRecord
	raw, err := s.o.Store.Get(ctx, streamWait)
	if err != nil || json.Unmarshal(raw, &r) != nil || r.Assignment != assignment {
		return 0
	}
	return max(r.Waited, 0)
}

// endWait puts the wait on record before a stop.
func (s *Syncer[T]) endWait(ctx context.Context) error {
	if now, on := s.snapshot(), s.tracker.State(); now.epoch > 0 && s.awaits(now, on) {
		s.waited(ctx, now, on.Current.ID)
	}
	return s.keepWait(ctx)
}

// keepWait puts on record how long the config in use waits, if it does: nothing, once it was acknowledged.
func (s *Syncer[T]) keepWait(ctx context.Context) error {
	now := s.snapshot()
	if now.wait.assignment == "" {
		return nil
	}
	r := ackRecord{Assignment: now.wait.assignment, BootID: s.o.BootID}
	if !now.acked {
		r.Waited = now.wait.sum()
	}
	raw, err := json.Marshal(r)
	if err == nil {
		err = s.o.Store.Put(ctx, streamWait, raw)
	}
	if err != nil {
		return fmt.Errorf("recording the wait for an acknowledgement: %w", err)
	}
	return nil
}
