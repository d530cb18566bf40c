// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

// recorder collects what a suite would report.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Failed() bool              { return len(r.failures) > 0 }
func (r *recorder) Log(...any)                {}
func (r *recorder) Logf(string, ...any)       {}
func (r *recorder) Errorf(f string, a ...any) { r.failures = append(r.failures, fmt.Sprintf(f, a...)) }
func (r *recorder) Fatalf(f string, a ...any) { r.Errorf(f, a...); panic(r) }

// mutant wraps the real tracker; each one breaks one rule.
type mutant struct {
	lkgtest.Tracker
	store lkg.Store
	o     lkg.Options
}

func wrap(make func(mutant) lkgtest.Tracker) func(*lkgtest.Options) {
	return func(o *lkgtest.Options) {
		o.Open = func(ctx context.Context, s lkg.Store, o lkg.Options) (lkgtest.Tracker, error) {
			tr, err := lkg.NewTracker(ctx, s, o)
			return make(mutant{tr, s, o}), err
		}
	}
}

// lies makes a store that acknowledges some writes and does not keep them.
func lies(beliefs ...string) func(*lkgtest.Options) {
	return func(o *lkgtest.Options) {
		o.Filter = func(stream string, payload []byte) ([]byte, bool) {
			return payload, slices.Contains(beliefs, stream[strings.LastIndex(stream, "/")+1:])
		}
	}
}

type excusesCrashes struct{ mutant }

func (m excusesCrashes) Start(ctx context.Context, e lkg.Exit) error {
	if e.Kind == lkg.ExitCrash {
		e = lkg.Exit{Kind: lkg.ExitClean}
		if err := m.PlanRestart(ctx, lkg.CausePlanned); err != nil {
			return err
		}
	}
	return m.mutant.Start(ctx, e)
}

type hasty struct{ mutant }

func (m hasty) Healthy(ctx context.Context, h lkg.Health) (lkg.Progress, error) {
	h.Elapsed *= 3
	return m.mutant.Healthy(ctx, h)
}

// wallClock measures health by the wall clock.
type wallClock struct {
	mutant
	last *time.Time
}

func (m wallClock) Healthy(ctx context.Context, h lkg.Health) (lkg.Progress, error) {
	now := m.o.Now()
	if !m.last.IsZero() {
		h.Elapsed = now.Sub(*m.last)
	}
	*m.last = now
	return m.mutant.Healthy(ctx, h)
}

type ignoresBaseline struct{ mutant }

func (m ignoresBaseline) Decide(
	ctx context.Context, l func(lkg.Ref) lkg.Limits, c func(lkg.Ref) lkg.Check,
) (lkg.Verdict, error) {
	return m.mutant.Decide(ctx, l, func(r lkg.Ref) lkg.Check {
		if r.IsLocal() {
			return lkg.Check{Outcome: lkg.CheckOK}
		}
		return c(r)
	})
}

type skipsChecks struct{ mutant }

func (m skipsChecks) Decide(
	ctx context.Context, l func(lkg.Ref) lkg.Limits, _ func(lkg.Ref) lkg.Check,
) (lkg.Verdict, error) {
	return m.mutant.Decide(ctx, l, func(lkg.Ref) lkg.Check { return lkg.Check{Outcome: lkg.CheckOK} })
}

// bold tries a config as if every start were on record.
type bold struct{ mutant }

func (m bold) Decide(ctx context.Context, l func(lkg.Ref) lkg.Limits, c func(lkg.Ref) lkg.Check) (lkg.Verdict, error) {
	v, err := m.mutant.Decide(ctx, l, c)
	if would := lkg.Decide(lkg.Input{State: m.State(), Recorded: true, Limits: l}, c); would.OnTrial {
		return would, err
	}
	return v, err
}

// rollsCurrentBack makes a rollback permanent in the wrong record.
type rollsCurrentBack struct{ mutant }

func (m rollsCurrentBack) Decide(
	ctx context.Context, l func(lkg.Ref) lkg.Limits, c func(lkg.Ref) lkg.Check,
) (lkg.Verdict, error) {
	v, err := m.mutant.Decide(ctx, l, c)
	if v.Role == lkg.RoleLastKnownGood {
		err = errors.Join(err, m.Assign(ctx, v.Use))
	}
	return v, err
}

// resetsCurrentFirst writes in the wrong order.
type resetsCurrentFirst struct{ mutant }

func (m resetsCurrentFirst) Reset(ctx context.Context) error {
	if err := m.store.Put(ctx, "current", nil); err != nil {
		return err
	}
	return m.mutant.Reset(ctx)
}

// forgetsCase loses which configs did not live.
func forgetsCase(o *lkgtest.Options) {
	o.Filter = func(stream string, payload []byte) ([]byte, bool) {
		if !strings.HasSuffix(stream, "trial") {
			return payload, false
		}
		var doc map[string]any
		if json.Unmarshal(payload, &doc) != nil {
			return payload, false
		}
		delete(doc, "case")
		if starts, ok := doc["starts"].([]any); ok && len(starts) > 3 {
			doc["starts"] = starts[len(starts)-3:]
		}
		out, err := json.Marshal(doc)
		return out, err != nil
	}
}

// TestMutantsAreCaught breaks one rule at a time and expects Explore to say which.
func TestMutantsAreCaught(t *testing.T) {
	for _, c := range []struct {
		name, story, want string
		mutate            func(*lkgtest.Options)
	}{
		{
			"store that loses startups and evidence", "good config, then a crashing one", "a try is counted before it is made",
			lies("startups", "trial"),
		},
		{
			"store that loses bad configs", "left, compared, tried again, rejected", "a rejected config is not used",
			lies("bad-configs"),
		},
		{
			"crashes excused as planned", "good config, then a crashing one", "R-CS-64",
			wrap(func(m mutant) lkgtest.Tracker { return excusesCrashes{m} }),
		},
		{
			"healthy time counted three times", "good config, then a crashing one", "R-CS-46",
			wrap(func(m mutant) lkgtest.Tracker { return hasty{m} }),
		},
		{
			"healthy time by the wall clock", "step of the clock during a trial", "R-CS-46",
			wrap(func(m mutant) lkgtest.Tracker { return wallClock{m, new(time.Time)} }),
		},
		{
			"baseline not checked", "bad baseline", "R-CS-52/53",
			wrap(func(m mutant) lkgtest.Tracker { return ignoresBaseline{m} }),
		},
		{
			"checks skipped", "invalid config, then reset", "passed its checks",
			wrap(func(m mutant) lkgtest.Tracker { return skipsChecks{m} }),
		},
		{
			"unrecorded start tries a config", "good config, then a crashing one", "a try is counted before it is made",
			wrap(func(m mutant) lkgtest.Tracker { return bold{m} }),
		},
		{
			"rollback changes current", "good config, then a crashing one", "R-CS-56",
			wrap(func(m mutant) lkgtest.Tracker { return rollsCurrentBack{m} }),
		},
		{
			"reset in the wrong order", "invalid config, then reset", "R-CS-55",
			wrap(func(m mutant) lkgtest.Tracker { return resetsCurrentFirst{m} }),
		},
		{"case forgotten", "fallbacks crash and the process dies", "what did not live is used again only", forgetsCase},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options()
			c.mutate(&o)
			rec := &recorder{TB: t}
			exploreRecorded(rec, o, c.story)
			if got := strings.Join(rec.failures, "\n"); !strings.Contains(got, c.want) {
				t.Errorf("caught:\n%s\nwant a failure that names %q", got, c.want)
			}
		})
	}
}

func exploreRecorded(rec *recorder, o lkgtest.Options, name string) {
	defer func() {
		if r := recover(); r != nil && r != any(rec) {
			panic(r)
		}
	}()
	story, ok := stories[name]
	switch {
	case name == "bad baseline":
		o.Check = func(r lkg.Ref) lkg.Check {
			if r.IsLocal() {
				return lkg.Check{Outcome: lkg.CheckInvalid}
			}
			return lkg.Check{Outcome: lkg.CheckOK}
		}
		story = func(m *lkgtest.Machine) { m.Start() }
	case name == "step of the clock during a trial":
		story = func(m *lkgtest.Machine) {
			m.Adopt(a)
			m.Start()
			m.Healthy(20 * time.Second)
			for range 5 {
				m.Step(time.Hour)
				m.Healthy(10 * time.Second)
			}
		}
	case name == "fallbacks crash and the process dies":
		story = func(m *lkgtest.Machine) {
			for _, r := range []lkg.Ref{a, b} {
				m.Adopt(r)
				m.Start()
				m.Healthy(2 * time.Minute)
			}
			m.Adopt(broken)
			for range 12 {
				m.Start()
				m.Kill()
			}
		}
	case !ok:
		rec.Errorf("no story %q", name)
		return
	}
	lkgtest.Explore(rec, o, story)
}
