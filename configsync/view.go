// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
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
	// Fields are those of the config that the next start would use, by path, with their origins and without their values.
	// At most [maxFields] are told. Built-in defaults and what can't be read have none.
	Fields []Field
}

// Explain reads the records through g and says what the next start would do, by the function that decides there. It
// writes nothing and may run beside a live Syncer. Of o it uses Version, Key, Codec, Validators, Inspectors, Changes,
// Proofs, Init, Default, Bounds and Policy; no Proof runs anything where it has a Recall. A Codec that is also
// [Origins] says where the fields come from. A local config that is not good is in Next.Refuse.
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
	b := newBook(newChecker(&o))
	b.judgeAgain(ctx, &st)
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

// leastStartTime is how long a run may take at least to become healthy before its condition says
// that it is not.
const leastStartTime = 10 * time.Second

// endedError is an error of the Check of a Restarter that tells a child that has ended on its own
// from one that is about to be started. See [Options].Restarter.
type endedError interface{ Ended() bool }

// whyUnhealthy returns why the present run is not known to be healthy, in words that stay the same as
// long as the cause does, or the empty string. A run that nothing speaks against has time to become
// healthy. A run after a bad end has none: its condition must not change twice with each crash.
func (v view) whyUnhealthy() string {
	starting := v.run.healthy.IsZero() && v.age < v.startTime
	var ended endedError
	switch {
	case v.child != nil && (!starting || errors.As(v.child, &ended) && ended.Ended()):
		return "not healthy: " + v.child.Error()
	case isBadEnd(v.run.ended) && !v.run.isProven(v.limits):
		return "not healthy: ended: " + cmp.Or(v.run.ended.Signature, v.run.ended.Detail, "in an unknown way")
	case v.sick != "" && !starting:
		return "not healthy: required probe " + strconv.Quote(v.sick) + " fails"
	default:
		return ""
	}
}

// addHealth makes a condition that is True say why the run is not healthy. Another condition has a
// cause already.
func (s *Status) addHealth(now view) {
	why := now.whyUnhealthy()
	switch {
	case why == "":
	case s.Condition.Status == lkg.StatusTrue:
		s.Condition = lkg.Condition{Status: lkg.StatusUnknown, Reason: why, Message: s.Condition.Message}
	case s.Error == "":
		s.Error = why
	}
}

// alarm says what a person must look at: required probes that fail where nothing is left to fall back to, or where
// going back did not help. It is pure. sick is for how long the probe of that name fails.
func alarm(st lkg.State, v lkg.Verdict, l lkg.Limits, probe string, sick time.Duration) string {
	deadline := l.ProbeDeadline
	if deadline <= 0 {
		deadline = (lkg.Bounds{}).Clamp(l).ProbeDeadline // the default
	}
	switch {
	case probe == "" || sick <= deadline:
		return ""
	case v.Role != lkg.RoleCurrent:
		return fmt.Sprintf("went back to %s, and there required probe %q fails for more than %s",
			lkgName(v.Use), probe, deadline)
	case v.Use.IsLocal():
		return fmt.Sprintf("required probe %q fails for more than %s, and nothing is left to fall back to", probe, deadline)
	case st.Case != nil:
		return fmt.Sprintf("required probe %q fails for more than %s, with this config and with what is below it",
			probe, deadline)
	}
	return ""
}
