// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belayproject/belay/lkg"
)

// Ack has every config on trial wait for a word from outside, as the commit of a router's config waits for its confirmation: who has lost the
// way to the node by a config can't give it, and the node goes back by itself.
type Ack struct {
	// Given says whether a config was acknowledged. It is asked in each round of probes until it says so, and again after each start. It
	// must end with ctx. Trouble is no word. Required.
	Given func(ctx context.Context, r lkg.Ref) (bool, error)
	// Deadline is how long a config waits for it: 15 min for zero. Then it is rejected and left. It is a sum of monotonic time in which the
	// config ran, over all its starts, reboots too, since it was assigned or last acknowledged: no restart begins it anew. A kill loses no
	// more of it than Options.ProbeInterval.
	Deadline time.Duration
}

const defaultAckDeadline = 15 * time.Minute

// check says what is wrong with a.
func (a *Ack) check() error {
	if a != nil && (a.Given == nil || a.Deadline < 0) {
		return fmt.Errorf("configsync: Options.Ack must have Given, and a Deadline that is positive or 0 for the default, got %s", a.Deadline)
	}
	return nil
}

// An ackState is where the acknowledgement of a run stands.
type ackState int

const (
	ackNone    ackState = iota // nobody waits for one
	ackWaiting                 // not given yet: no healthy time is credited, so the trial begins when it is
	ackLate                    // not given in time
)

// judgeAck is pure. waited is how long the config waits.
func judgeAck(a *Ack, given bool, waited time.Duration) ackState {
	deadline := a.Deadline
	if deadline == 0 {
		deadline = defaultAckDeadline
	}
	switch {
	case given:
		return ackNone
	case waited > deadline:
		return ackLate
	default:
		return ackWaiting
	}
}

// awaits reports whether what runs is on trial and waits for an acknowledgement.
func (s *Syncer[T]) awaits(now live[T], on lkg.State) bool {
	return s.o.Ack != nil && !now.acked && on.OnTrial() && now.active.Verdict.Role == lkg.RoleCurrent && now.active.Ref.Same(on.Current.Ref)
}

// awaitAck asks for the acknowledgement of what runs on trial, unless this run has it. why is for people; empty with ackNone.
func (s *Syncer[T]) awaitAck(ctx context.Context, now live[T]) (st ackState, why string) {
	on := s.tracker.State()
	if !s.awaits(now, on) {
		return ackNone, ""
	}
	given, err := s.askAck(ctx, now.active.Ref)
	st = judgeAck(s.o.Ack, given && err == nil, s.waited(ctx, now, on.Current.ID))
	s.mu.Lock()
	if s.live.epoch == now.epoch {
		s.live.acked = st == ackNone
	}
	s.mu.Unlock()
	if err := s.keepWait(ctx); ctx.Err() == nil {
		s.noteStorage(err)
	}
	if st != ackNone {
		why = "acknowledgement: " + errors.Join(errNoAck, err).Error()
	}
	return st, why
}

var errNoAck = errors.New("not given yet")

// askAck turns a panic of Given into its trouble.
func (s *Syncer[T]) askAck(ctx context.Context, r lkg.Ref) (given bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			given, err = false, fmt.Errorf("panic of type %T", p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, s.o.ProbeTimeout)
	defer cancel()
	return s.o.Ack.Given(ctx, r)
}

// rejectUnacknowledged leaves a config that nobody has acknowledged in time, also where that can't be recorded.
func (s *Syncer[T]) rejectUnacknowledged(ctx context.Context, r lkg.Ref) error {
	deadline := s.o.Ack.Deadline
	if deadline == 0 {
		deadline = defaultAckDeadline
	}
	err := s.tracker.Reject(ctx, r, "not acknowledged within "+deadline.String())
	wake(s.notes.report)
	return errors.Join(err, s.settle(ctx, true)) // to go back needs no record
}
