// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Assign makes r the current config, with a new trial, from the next start on. The config's checkpoint must be durable
// before. Assigning the present one again changes nothing but its ResourceVersion. A config that is listed as bad may
// be assigned; it is not used until it is forgotten. The local config is set with Reset. Writes: current.
func (t *Tracker) Assign(ctx context.Context, r Ref) error {
	if err := r.validate(); err != nil {
		return err
	}
	leave, err := t.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	next := t.cur
	switch {
	case t.s.CurrentLost:
		next = source{}
	case r == t.cur.ref:
		return nil
	case r.Same(t.cur.ref):
		next.ref = r
		return t.putCurrent(ctx, "assigning", next)
	}
	next.ref, next.refExtra = r, nil
	return t.putCurrent(ctx, "assigning", t.anew(next))
}

// anew gives a source a new assignment.
func (t *Tracker) anew(next source) source {
	next.id, next.at, next.bootID = t.o.ID(), t.now(), t.s.BootID
	return next
}

func (t *Tracker) putCurrent(ctx context.Context, op string, next source) error {
	if err := t.records.put(ctx, op, streamCurrent, next.encode); err != nil {
		return err
	}
	t.cur, t.s.Current, t.s.CurrentLost = next, next.assignment(), false
	t.s.keepCase()
	return nil
}

func (t *Tracker) putGood(ctx context.Context, op string, next source) error {
	if err := t.records.put(ctx, op, streamLastKnownGood, next.encode); err != nil {
		return err
	}
	t.good, t.s.LastKnownGoodLost = next, false
	t.s.takeGood(next)
	t.s.keepCase()
	return nil
}

// Reset makes the local config current and last known good. Writes: last-known-good, then current: the other order
// could leave a remote last known good config that nobody wants any more. What is so already is not written.
func (t *Tracker) Reset(ctx context.Context) error {
	leave, err := t.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	const op = "resetting to the local config"
	if t.s.LastKnownGoodLost || !t.s.LastKnownGood.IsLocal() {
		if err := t.putGood(ctx, op, source{}); err != nil {
			return err
		}
	}
	if t.s.CurrentLost || !t.s.Current.Ref.IsLocal() {
		return t.putCurrent(ctx, op, source{})
	}
	return nil
}

// SetDesired records the outcome of looking for the desired config. The same outcome again is not written. An
// outcome that is no answer (Unreachable, Forbidden) does not replace the knowledge that the source is wrong.
// Writes: sync.
func (t *Tracker) SetDesired(ctx context.Context, o Outcome) error {
	leave, err := t.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if !o.replaces(t.s.Desired) {
		return nil
	}
	if o.At.IsZero() {
		o.At = t.now()
	}
	if err := t.records.put(ctx, "recording the desired source", streamDesired, o.encode); err != nil {
		return err
	}
	t.s.Desired = o
	return nil
}

// Forget removes every bad entry of a UID, or of a digest, and every other entry with the content of one of them, so
// that the next start tries the config again, with a new trial. A UID that is assigned, and whose content is listed for
// another UID, will do too. For the assigned config it ends a suspicion as well. It is an error for which
// errors.Is(err, fs.ErrNotExist) holds if there is none. Writes: current, then bad-configs; or current, then trial.
func (t *Tracker) Forget(ctx context.Context, uid string) error {
	leave, err := t.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	cur := t.s.Current.Ref
	named := func(r Ref) bool { return uid != "" && (r.UID == uid || r.Digest == uid) }
	kept := slices.DeleteFunc(slices.Clone(t.s.Bad), func(e BadEntry) bool {
		return named(e.Ref) || named(cur) && cur.hasContent(e.Ref) ||
			slices.ContainsFunc(t.s.Bad, func(o BadEntry) bool { return named(o.Ref) && o.Ref.hasContent(e.Ref) })
	})
	if len(kept) == len(t.s.Bad) {
		if named(cur) && t.s.openCase().hasSuspect(cur) { // with a new assignment the case is closed
			return closeCase(ctx, t)
		}
		return fmt.Errorf("forgetting bad config %q: %w", uid, fs.ErrNotExist)
	}
	const op = "forgetting a bad config"
	after := State{Bad: kept, Binary: t.s.Binary}
	if t.s.badEntry(cur) != nil && after.badEntry(cur) == nil { // its old starts would reject it at once
		if err := closeCase(ctx, t); err != nil {
			return err
		}
	}
	old := t.s.Bad
	t.s.Bad = kept
	if err := t.records.putBad(ctx, op, &t.s); err != nil {
		t.s.Bad = old
		return err
	}
	return nil
}

// closeCase ends the suspicion against the current config on a person's word, and begins its trial anew.
func closeCase(ctx context.Context, t *Tracker) error {
	const op = "closing a case"
	if err := t.restartTrial(ctx, op); err != nil {
		return err
	}
	t.s.Case = nil
	t.s.settleStarts(settlement{all: true})
	return t.records.putTrial(ctx, op, &t.s)
}

// restartTrial gives the current config a new assignment. If it runs, its run is the first of the new one.
func (t *Tracker) restartTrial(ctx context.Context, op string) error {
	running := t.s.running()
	if err := t.putCurrent(ctx, op, t.anew(t.cur)); err != nil || !running {
		return err
	}
	last := t.s.lastStart()
	last.Assignment, last.N = t.s.Current.ID, 1
	return t.records.putTrial(ctx, op, &t.s)
}

// Reject lists a config as bad on somebody's word. The next start avoids it, and the next health report about it says
// Rejected. A listed config keeps its first reason. Writes: bad-configs.
func (t *Tracker) Reject(ctx context.Context, r Ref, reason string) error {
	if err := r.validate(); err != nil {
		return err
	}
	leave, err := t.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	e := BadEntry{Ref: r, Time: t.now(), Reason: reasonPerson(r, reason), Evidence: "rejected by request"}
	return t.records.listBad(ctx, "rejecting a config", &t.s, e)
}

// validate says what a reference needs in order to be recorded.
func (r Ref) validate() error {
	if r.UID == "" || strings.ContainsAny(r.UID, " \t\r\n") {
		return &fieldError{"uid", fmt.Sprintf("%q", r.UID), "must not be empty or contain white space"}
	}
	return nil
}

func (m restartMarker) encode() ([]byte, error) { return json.Marshal(m) }
func (o Outcome) encode() ([]byte, error)       { return json.Marshal(o) }

// Refuse lists a config as bad because a check said so before the config was ever assigned, with the reason that a
// start would have given. c must be CheckUndecodable or CheckInvalid. A listed config keeps its first reason. Writes:
// bad-configs.
func (t *Tracker) Refuse(ctx context.Context, r Ref, c Check) error {
	if err := r.validate(); err != nil {
		return err
	}
	e := BadEntry{Ref: r}
	switch c.Outcome {
	case CheckUndecodable:
		e.Reason = reasonLoad(r)
	case CheckInvalid:
		e.Reason = reasonValidate(r)
	default:
		return &fieldError{"outcome", fmt.Sprintf("%q", c.Outcome), "must be undecodable or invalid"}
	}
	leave, err := t.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	e.Time, e.Evidence = t.now(), evidence(0, nil, c.Err)
	return t.records.listBad(ctx, "refusing a config", &t.s, e)
}
