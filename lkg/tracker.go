// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"
)

// Options of a Tracker.
type Options struct {
	// Version of the agent. Required. Beliefs of other versions are never read.
	Version string
	// BootID is what the platform says, for example /proc/sys/kernel/random/boot_id. Empty: reboots can not be told.
	BootID string
	// Now is the wall clock, for records only: nothing is judged by it but starts whose evidence was lost. Nil: time.Now.
	Now func() time.Time
	// ID makes a new unique id for assignments and markers. Nil: random.
	ID func() string
	// Binary identifies the program that is configured, for example by its digest. It is asked at each start: a config
	// that is listed as bad is listed for that program alone. Nil, or an empty answer: a config is bad for each program.
	Binary func() string
	// Policy of the decisions.
	Policy Policy
	// Keep is called before `last-known-good` names the ref, so that the caller can store the good config's own
	// copy. With an error the config stays on trial. It must not call the Tracker, but for State. Nil: nothing to do.
	Keep func(ctx context.Context, ref Ref) error
}

// A Tracker keeps the state of one node's config in a Store and applies [Decide] and the rule of promotion to it.
//
// Errors of the store wrap [ErrRecord]. After one, what is known about good and bad configs stays in memory and is
// written with the next write of the same record; what was asked for (an assignment, a reset) did not happen.
type Tracker struct {
	o     Options
	shown atomic.Pointer[State] // what State shows; replaced at the end of each call, never changed

	turn chan struct{} // holds one token: whoever took it owns everything below
	s    State
	cur  source // records as read, for the members that this version does not know
	good source

	presentRun
	records recordWriter
}

// A presentRun is what a Tracker knows of the start that it has recorded.
type presentRun struct {
	started  bool   // Start was called: the last start is this one
	recorded bool   // and it is on record
	limits   Limits // of the config in use
}

// NewTracker reads the records. Records that can not be read are set aside, with a [Notice] in the state; only ctx and
// wrong options are errors. It writes nothing.
func NewTracker(ctx context.Context, store Store, o Options) (*Tracker, error) {
	l, err := load(ctx, "lkg.NewTracker", store, o.Version)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ID == nil {
		o.ID = rand.Text
	}
	t := &Tracker{o: o, turn: make(chan struct{}, 1), s: l.state, cur: l.current, good: l.good}
	t.records = recordWriter{store: store, version: o.Version}
	t.s.BootID = o.BootID
	t.show()
	t.turn <- struct{}{}
	return t, nil
}

// State is a deep copy of the present state. It waits for no call. That of a zero Tracker is empty.
func (t *Tracker) State() State {
	if s := t.shown.Load(); s != nil {
		return s.clone()
	}
	return State{}
}

func (t *Tracker) show() {
	c := t.s.clone()
	t.shown.Store(&c)
}

// enter takes the turn. The caller must call leave.
func (t *Tracker) enter(ctx context.Context) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-t.turn:
		return func() {
			t.show()
			t.turn <- struct{}{}
		}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// now is the wall clock as it is recorded: UTC, without the monotonic reading.
// A clock far outside the years that a record can hold reads as the epoch.
func (t *Tracker) now() time.Time {
	now := t.o.Now().UTC().Round(0)
	if y := now.Year(); y < 1 || y > 9998 {
		return time.Unix(0, 0).UTC()
	}
	return now
}
