// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"time"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/lkg"
)

// view is the part of the live state that a status shows.
type view struct {
	verdict   lkg.Verdict
	limits    lkg.Limits
	startedAt time.Time
	sync      syncState
	storage   error
	run       runState
	child     error         // why what is configured does not run; nil: it runs, or that is not known
	age       time.Duration // of the run
	startTime time.Duration // how long a run may take to become healthy
	sick      string        // the required probe that fails
	sickFor   time.Duration // without a break
}

// An Explanation says what is on record and what the next planned start would do with it.
type Explanation struct {
	// State is what is on record, damage included.
	State lkg.State
	// Next is the verdict of a start that happens now and is on record.
	Next lkg.Verdict
	// Limits are those of the assigned config, within the operator's bounds; zero where it can't be loaded.
	Limits lkg.Limits
	// Fields are those of the config that the next start would use, by path, with their origins and without their
	// values. At most
	// [maxFields] are told. Built-in defaults and what can't be read have none.
	Fields []Field
}

// Explain reads the records through g and says what the next start would do, by the function that decides there.
// It writes
// nothing and may run beside a live Syncer. Of o it uses Version, Key, Codec, Validators, Inspectors, Changes,
// Proofs, Init, Default,
// Bounds and Policy; no Proof runs anything where it has a Recall. A Codec that is also [Origins] says where the
// fields come from.
// A local config that is not good is in Next.Refuse.
func Explain[T any](ctx context.Context, g lkg.Getter, o Options[T]) (Explanation, error) {
	if err := option.CheckRequired("configsync.Explain", "g", g, "see checkpoint.OpenReader"); err != nil {
		return Explanation{}, err
	}
	o.Store, o.Source, o.Proofs = readOnly{nowhere{}, g}, nil, recalled(o.Proofs, g)
	o, err := o.withDefaults()
	if err != nil {
		return Explanation{}, err
	}
	st, err := lkg.Load(ctx, g, o.Version)
	if err != nil {
		return Explanation{}, err
	}
	b := newBook(&Syncer[T]{o: o})
	v := lkg.Decide(lkg.Input{State: st, Recorded: true, Limits: b.limits, Policy: o.Policy},
		func(r lkg.Ref) lkg.Check { return b.judged(ctx, &st, r) })
	return Explanation{State: st, Next: v, Limits: b.limits(st.Current.Ref), Fields: b.fields(v)}, nil
}

// readOnly reads through a Getter and keeps nothing.
type readOnly struct {
	nowhere
	g lkg.Getter
}

func (r readOnly) Get(ctx context.Context, stream string) ([]byte, error) {
	return r.g.Get(ctx, stream)
}
