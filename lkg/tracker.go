// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"context"
	"errors"
	"time"
)

// A Getter gives the newest payload of a record. A record that never was is an error for which
// errors.Is(err, fs.ErrNotExist) holds. An empty payload is a record.
type Getter interface {
	Get(ctx context.Context, stream string) ([]byte, error)
}

// A Store keeps records. Put is durable once it returned nil, and after an error the record is the old or the new one,
// never a mixture.
type Store interface {
	Getter
	Put(ctx context.Context, stream string, payload []byte) error
}

// The names of the records. Beliefs lie under the agent's version: see [BeliefStream].
const (
	StreamCurrent       = "current"
	StreamLastKnownGood = "last-known-good"
	StreamMarker        = "planned-restart"
	StreamDesired       = "sync"

	BeliefBad      = "bad-configs"
	BeliefStartups = "startups"
	BeliefTrial    = "trial"
)

// BeliefStream is the name of a belief record of one agent version. The version is made safe for a file name;
// different versions get different names.
func BeliefStream(version, belief string) string { return "" }

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
	// Policy of the decisions.
	Policy Policy
	// Keep is called before `last-known-good` names the ref, so that the caller can store the good config's own
	// copy. With an error the config stays on trial. Nil: nothing to do.
	Keep func(ctx context.Context, ref Ref) error
}

// Load reads the state of an agent version without changing anything, for a status command beside a live agent. Records
// that can not be read are in State.Notices. The error is that of ctx, or of a wrong version.
func Load(ctx context.Context, g Getter, version string) (State, error) {
	return State{}, errors.ErrUnsupported
}

// A Tracker keeps the state of one node's config in a Store and applies [Decide] and [Promote] to it.
//
// Errors of the store are [*RecordError]s.
type Tracker struct{}

// NewTracker reads the records. Records that can not be read are set aside, with a [Notice] in the state; only ctx and
// wrong options are errors. It writes nothing.
func NewTracker(ctx context.Context, store Store, o Options) (*Tracker, error) {
	return nil, errors.ErrUnsupported
}

// Start records that the configured thing starts, and how its previous run ended. It is the first write of every start:
// call it before anything can fail. Writes: startups, then trial. With a [*RecordError] the start is not on record;
// Decide still works, and will not use a config on trial. Each call is another start.
func (t *Tracker) Start(ctx context.Context, e Exit) error { return errors.ErrUnsupported }

// Decide picks the config to use and records what must be on record before it may be used: a newly rejected config
// first, then what this start uses and how far fallbacks stepped down.
//
// With a [*BaselineError] nothing may be used. With a [*RecordError] the verdict is valid and safe to act on; tell
// somebody about the disk. With any other error there is no verdict.
func (t *Tracker) Decide(ctx context.Context, limits func(Ref) Limits, check func(Ref) Check) (Verdict, error) {
	return Verdict{}, errors.ErrUnsupported
}

// Assign makes r the current config, with a new trial, from the next start on. The config's checkpoint must be
// durable before. Assigning the present one again changes nothing but its ResourceVersion. A config that is listed as bad
// may be assigned; it is not used until it is forgotten. The local config is set with Reset. Writes: current.
func (t *Tracker) Assign(ctx context.Context, r Ref) error { return errors.ErrUnsupported }

// PlanRestart announces the next start, which then counts against nobody. kind is CauseAdoption or CausePlanned.
// Call it right before a restart on purpose, also from the handler of a stop signal. Writes: planned-restart.
func (t *Tracker) PlanRestart(ctx context.Context, kind Cause) error { return errors.ErrUnsupported }

// Reset makes the local config current and last known good. Writes: last-known-good, then current: the other order could
// leave a remote last known good config that nobody wants any more.
func (t *Tracker) Reset(ctx context.Context) error { return errors.ErrUnsupported }

// SetDesired records the outcome of looking for the desired config. The same outcome again is not written. An
// outcome that is no answer (Unreachable, Forbidden) does not replace the knowledge that the source is wrong.
// Writes: sync.
func (t *Tracker) SetDesired(ctx context.Context, o Outcome) error { return errors.ErrUnsupported }

// Healthy takes a health report about the running config, adds up its healthy time, and promotes or rejects it, by the
// limits that the last Decide was given for it. Added-up
// time is written every 10 s of it at most; what a crash loses only lengthens the trial. A rejection is on record when
// Healthy returns it. Writes: last-known-good, or bad-configs, or trial.
func (t *Tracker) Healthy(ctx context.Context, h Health) (Progress, error) {
	return Progress{}, errors.ErrUnsupported
}

// Forget removes every bad entry of a UID, so that the next start tries the config again, with a new trial. It is an
// error for which errors.Is(err, fs.ErrNotExist) holds if there is none. Writes: current, then bad-configs.
func (t *Tracker) Forget(ctx context.Context, uid string) error { return errors.ErrUnsupported }

// Reject lists a config as bad on somebody's word. The next start avoids it. Writes: bad-configs.
func (t *Tracker) Reject(ctx context.Context, r Ref, reason string) error {
	return errors.ErrUnsupported
}

// Promote makes the running current config the last known good one on somebody's word, without waiting for its trial.
// Errors: ErrNotRunning if the last start did not use it, ErrRejected if it is listed as bad. Writes: last-known-good.
func (t *Tracker) Promote(ctx context.Context) error { return errors.ErrUnsupported }

// State is a deep copy of the present state.
func (t *Tracker) State() State { return State{} }
