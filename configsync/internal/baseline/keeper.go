// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

const (
	// Stream is the record of the baselines of the assigned config.
	Stream = "baseline"
	// Timeout is how long a restart waits for all baselines.
	Timeout = 2 * time.Second
	// maxBaseline bounds the baseline of one probe, in bytes. A longer one is not kept.
	maxBaseline = 64 << 10
)

// A Store keeps the record.
type Store interface {
	Get(ctx context.Context, stream string) ([]byte, error)
	Put(ctx context.Context, stream string, payload []byte) error
}

// A Comparer is a probe that compares: see configsync.Probe.
type Comparer interface {
	Name() string
	Check(ctx context.Context) error
	TakeBaseline(ctx context.Context) ([]byte, error)
	Compare(ctx context.Context, baseline []byte, fallback bool) error
}

// Use says what is in use.
type Use struct {
	// Trial identifies the assigned config, its assignment, and the last promotion: one more promotion ends a trial.
	// Empty if nothing is assigned.
	Trial string
	// Fallback says that another config than the assigned one is in use.
	Fallback bool
}

// record is the payload of Stream.
type record struct {
	Trial  string            `json:"trial"`
	Probes map[string][]byte `json:"probes"` // by name
}

// A Keeper keeps the baselines of comparers. Make it with [NewKeeper].
type Keeper struct {
	store Store
	use   func() Use

	mu   sync.Mutex
	read bool // the record was read
	rec  record
	run  int // that was there when rec was taken by this process; 0: none
}

// NewKeeper returns a Keeper over a store; use says what is in use.
func NewKeeper(store Store, use func() Use) *Keeper { return &Keeper{store: store, use: use} }

// A Compared is a comparer whose Check compares, where there is a baseline of the trial.
type Compared struct {
	Comparer
	Keeper *Keeper
}

// Check asks Compare where there is a baseline of the trial, and the comparer's own Check where there is none.
func (c Compared) Check(ctx context.Context) error {
	use := c.Keeper.use()
	baseline := c.Keeper.load(ctx, use.Trial).Probes[c.Name()]
	if baseline == nil {
		return c.Comparer.Check(ctx)
	}
	return c.Compare(ctx, baseline, use.Fallback)
}

// load returns the record of a trial, empty if there is none. A record that can't be read counts as none.
func (k *Keeper) load(ctx context.Context, trial string) record {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.read {
		payload, err := k.store.Get(ctx, Stream)
		if err == nil {
			err = json.Unmarshal(payload, &k.rec)
		}
		if err != nil {
			k.rec = record{}
		}
		k.read = ctx.Err() == nil
	}
	if trial == "" || k.rec.Trial != trial {
		return record{}
	}
	return k.rec
}

// TakeAll asks each comparer for its baseline before a restart, and keeps them for the trial in place of those before.
// run is the number of the run that the restart ends, from 1 on: what was taken during it stays, so a restart that is
// asked for again is compared with what was there before the first. It returns within [Timeout]. The error says what
// was left out, and why. Where the record can't be written there is no baseline; a process that is started later may
// find the one before.
func (k *Keeper) TakeAll(ctx context.Context, trial string, run int, all []Comparer) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	if len(all) == 0 || trial == "" || k.isTaken(trial, run) {
		return nil
	}
	rec := record{Trial: trial, Probes: map[string][]byte{}}
	var first error
	for _, c := range all {
		baseline, err := takeOne(ctx, c)
		switch {
		case err == nil:
			rec.Probes[c.Name()] = baseline
		case first == nil:
			first = fmt.Errorf("baseline of probe %q: %w", c.Name(), err)
		}
	}
	payload, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	err = k.store.Put(ctx, Stream, payload)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read = true
	if err != nil {
		k.rec, k.run = record{}, 0
		return fmt.Errorf("recording the baselines: %w", err)
	}
	k.rec, k.run = rec, run
	return first
}

// isTaken reports whether this process has taken the baselines of a trial during a run.
func (k *Keeper) isTaken(trial string, run int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.run == run && run != 0 && k.rec.Trial == trial
}

// takeOne turns a panic of a probe, and a baseline that is too long, into an error.
func takeOne(ctx context.Context, c Comparer) (baseline []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic of type %T", r)
		}
	}()
	if baseline, err = c.TakeBaseline(ctx); err == nil && len(baseline) > maxBaseline {
		err = fmt.Errorf("it has %d bytes, more than %d", len(baseline), maxBaseline)
	}
	return baseline, err
}
