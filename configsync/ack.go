// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/belayproject/belay/lkg"
)

// Ack has every config on trial wait for a word from outside, as the commit of a router's config waits for its
// confirmation: who has lost the way to the node by a config can't give it, and the node goes back by itself.
type Ack struct {
	// Given says whether a config was acknowledged. It is asked in each round of probes until it says so, and again after
	// each start. It must end with ctx. Trouble is no word. Required.
	Given func(ctx context.Context, r lkg.Ref) (bool, error)
	// Deadline is how long a config waits for it: 15 min for zero. Then it is rejected and left. It is a sum of monotonic
	// time in which the config ran, over all its starts, reboots too, since it was assigned or last acknowledged: no
	// restart begins it anew. A kill loses no more of it than Options.ProbeInterval.
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

// deadline is how long a config waits.
func (a *Ack) deadline() time.Duration { return cmp.Or(a.Deadline, defaultAckDeadline) }

// An ackVerdict is where the acknowledgement of a run stands.
type ackVerdict int

const (
	ackNone    ackVerdict = iota // none is waited for
	ackWaiting                   // not given yet: no healthy time is credited, so the trial begins when it is
	ackLate                      // not given in time
)

// judgeAck is pure. waited is how long the config waits.
func judgeAck(a *Ack, given bool, waited time.Duration) ackVerdict {
	switch {
	case given:
		return ackNone
	case waited > a.deadline():
		return ackLate
	default:
		return ackWaiting
	}
}

// An ackState is what this process knows of the acknowledgement of the present run.
type ackState struct {
	given bool // the config was acknowledged in this run
	wait  ackWait
}

// An ackKeeper asks for the acknowledgement of a config on trial, and keeps on record how long the config waits for it.
type ackKeeper[T any] struct {
	ack     *Ack // nil: no config waits
	store   Store
	bootID  string
	timeout time.Duration // of Given
	live    *liveState[T]
}

// awaitAck asks for the acknowledgement of what runs on trial, unless this run has it. why is for people; empty with
// ackNone. The error is that of the record of the wait.
func (k ackKeeper[T]) awaitAck(ctx context.Context, now live[T], st lkg.State) (v ackVerdict, why string, err error) {
	if k.ack == nil || !now.awaitsAck(st) {
		return ackNone, "", nil
	}
	given, trouble := k.askGiven(ctx, now.active.Ref)
	v = judgeAck(k.ack, given && trouble == nil, k.measureWait(ctx, now, st.Current.ID))
	k.live.updateRun(now.epoch, func(l *live[T]) { l.ack.given = v == ackNone })
	err = k.keepWait(ctx)
	if v != ackNone {
		why = "acknowledgement: " + errors.Join(errNoAck, trouble).Error()
	}
	return v, why, err
}

var errNoAck = errors.New("not given yet")

// askGiven turns a panic of Given into its trouble.
func (k ackKeeper[T]) askGiven(ctx context.Context, r lkg.Ref) (given bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			given, err = false, fmt.Errorf("panic of type %T", p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	return k.ack.Given(ctx, r)
}

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

// measureWait is how long an assignment waits, over all its runs. A record that can't be read is none: the wait is
// longer then.
func (k ackKeeper[T]) measureWait(ctx context.Context, now live[T], assignment string) time.Duration {
	w := now.ack.wait
	if w.assignment == assignment {
		return w.sum()
	}
	w = ackWait{assignment: assignment, from: time.Now()}
	if now.ack.wait.assignment == "" {
		w.before, w.from = k.readWait(ctx, assignment), now.up
	}
	k.live.updateRun(now.epoch, func(l *live[T]) { l.ack.wait = w })
	return w.sum()
}

// readWait is how long an assignment had waited when that was last put on record.
func (k ackKeeper[T]) readWait(ctx context.Context, assignment string) time.Duration {
	var r ackRecord
	raw, err := k.store.Get(ctx, streamWait)
	if err != nil || json.Unmarshal(raw, &r) != nil || r.Assignment != assignment {
		return 0
	}
	return max(r.Waited, 0)
}

// endWait puts the wait on record before a stop.
func (k ackKeeper[T]) endWait(ctx context.Context, now live[T], st lkg.State) error {
	if now.epoch > 0 && k.ack != nil && now.awaitsAck(st) {
		k.measureWait(ctx, now, st.Current.ID)
	}
	return k.keepWait(ctx)
}

// keepWait puts on record how long the config in use waits, if it does: nothing, once it was acknowledged.
func (k ackKeeper[T]) keepWait(ctx context.Context) error {
	now := k.live.snapshot().ack
	if now.wait.assignment == "" {
		return nil
	}
	r := ackRecord{Assignment: now.wait.assignment, BootID: k.bootID}
	if !now.given {
		r.Waited = now.wait.sum()
	}
	raw, err := json.Marshal(r)
	if err == nil {
		err = k.store.Put(ctx, streamWait, raw)
	}
	if err != nil {
		return fmt.Errorf("recording the wait for an acknowledgement: %w", err)
	}
	return nil
}
