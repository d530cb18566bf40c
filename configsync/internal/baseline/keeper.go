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
	// Assignment identifies the assigned config and its assignment; empty if nothing is assigned.
	Assignment string
	// Fallback says that another config than the assigned one is in use.
	Fallback bool
}

// record is the payload of Stream.
type record struct {
	Assignment string            `json:"assignment"`
	Probes     map[string][]byte `json:"probes"` // by name
}

// A Keeper keeps the baselines of comparers. Make it with [NewKeeper].
type Keeper struct {
	store Store
	use   func() Use

	mu   sync.Mutex
	read bool // the record was read
	rec  record
}

// NewKeeper returns a Keeper over a store; use says what is in use.
func NewKeeper(store Store, use func() Use) *Keeper { return &Keeper{store: store, use: use} }

// A Compared is a comparer whose Check compares, where the assigned config has a baseline.
type Compared struct {
	Comparer
	Keeper *Keeper
}

// Check asks Compare where there is a baseline for the assigned config, and the comparer's own Check where there is
// none.
func (c Compared) Check(ctx context.Context) error {
	use := c.Keeper.use()
	baseline := c.Keeper.load(ctx, use.Assignment).Probes[c.Name()]
	if baseline == nil {
		return c.Comparer.Check(ctx)
	}
	return c.Compare(ctx, baseline, use.Fallback)
}

// load returns the record of an assignment, empty if there is none. A record that can't be read counts as none.
func (k *Keeper) load(ctx context.Context, assignment string) record {
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
	if assignment == "" || k.rec.Assignment != assignment {
		return record{}
	}
	return k.rec
}

// TakeAll asks each comparer for its baseline and keeps them for the assignment, unless it has some already: then its
// config has been in use since. It returns within [Timeout]. The error says what was left out, and why.
func (k *Keeper) TakeAll(ctx context.Context, assignment string, all []Comparer) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	if len(all) == 0 || assignment == "" || k.load(ctx, assignment).Assignment != "" {
		return nil
	}
	rec := record{Assignment: assignment, Probes: map[string][]byte{}}
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
	if err := k.store.Put(ctx, Stream, payload); err != nil {
		return fmt.Errorf("recording the baselines: %w", err)
	}
	k.mu.Lock()
	k.rec, k.read = rec, true
	k.mu.Unlock()
	return first
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
