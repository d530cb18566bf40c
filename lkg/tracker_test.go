// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

func open(t *testing.T, s lkg.Store, o lkg.Options) *lkg.Tracker {
	t.Helper()
	if o.Version == "" {
		o.Version = "v1"
	}
	tr, err := lkg.NewTracker(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func decide(t *testing.T, tr *lkg.Tracker, l lkg.Limits) lkg.Verdict {
	t.Helper()
	v, err := tr.Decide(t.Context(), func(lkg.Ref) lkg.Limits { return l }, (&world{}).check)
	must(t, err)
	return v
}

// TestStartupsAreBounded: R-CS-65. A thousand planned reboots, and then a crash loop that is still seen.
func TestStartupsAreBounded(t *testing.T) {
	m := lkgtest.NewMachine(t,
		lkgtest.Options{Limits: func(lkg.Ref) lkg.Limits { return lkg.Limits{CrashLoopThreshold: 10} }})
	x := named("x")
	m.Adopt(x)
	for range 1000 {
		m.Start()
		m.Restart(lkg.CausePlanned)
		m.Reboot()
	}
	var list []string
	must(t, json.Unmarshal(m.Store.Records()["v1/startups"], &list))
	if len(list) > 36 || len(list) < 12 {
		t.Errorf("startups has %d entries after 1000 starts, want 12 to 36", len(list))
	}
	if first := m.Tracker().State().Starts[0]; first.Cause != lkg.CauseAdoption || first.N != 1 {
		t.Errorf("the oldest start is %+v, want the one that adopted the config", first)
	}
	v := m.Start()
	for range 10 {
		m.Crash()
		v = m.Start()
	}
	if !v.OnTrial || v.Counted != 10 {
		t.Errorf("after 10 crashes: on trial %v, counted %d", v.OnTrial, v.Counted)
	}
	m.Crash()
	if v = m.Start(); v.Role != lkg.RoleLocal || v.Counted != 11 {
		t.Errorf("after 11 crashes: %+v", v.Condition)
	}
	for range 200 {
		m.Crash()
		m.Start()
	}
	list = nil
	must(t, json.Unmarshal(m.Store.Records()["v1/startups"], &list))
	if len(list) > 36 {
		t.Errorf("startups has %d entries", len(list))
	}
}

// TestACrashingConfigIsNeverPromoted: the arithmetic hole of promotion by the clock. A process that lives 44 s and is
// restarted after 10 s makes fewer than 12 starts in ten minutes.
// L-CS-34.
func TestACrashingConfigIsNeverPromoted(t *testing.T) {
	for _, life := range []time.Duration{5 * time.Second, 44 * time.Second, 59 * time.Second, 5 * time.Minute} {
		m := lkgtest.NewMachine(t, lkgtest.Options{Limits: func(lkg.Ref) lkg.Limits {
			return lkg.Limits{Trial: 10 * time.Minute, CrashLoopThreshold: 10, MinHealthyRun: 6 * time.Minute}
		}})
		m.Adopt(named("x"))
		left := 0
		for i := 1; i <= 20 && left == 0; i++ {
			if m.Start().Role != lkg.RoleCurrent {
				left = i
			}
			if p := m.Healthy(life); p.Result == lkg.ResultPromoted {
				t.Errorf("a process that lives %v was promoted at start %d", life, i)
			}
			m.Crash()
			m.Step(10 * time.Second)
		}
		if left != 12 {
			t.Errorf("a process that lives %v was left at start %d, want 12", life, left)
		}
	}
}

// TestNoWritesWhenNothingChanges: ten minutes of a settled node, with reports and syncs, write nothing.
func TestNoWritesWhenNothingChanges(t *testing.T) {
	m := lkgtest.NewMachine(t, lkgtest.Options{})
	m.Adopt(named("a"))
	m.Start()
	m.Healthy(11 * time.Minute)
	sync := func() {
		m.Do("SetDesired", func(ctx context.Context, tr lkgtest.Tracker) error {
			return errors.Join(tr.SetDesired(ctx, lkg.Outcome{Kind: lkg.DesiredCorrect}), tr.Assign(ctx, named("a")))
		})
	}
	sync()
	before := m.Store.Writes()
	for range 60 {
		m.Healthy(10 * time.Second)
		sync()
	}
	if n := m.Store.Writes() - before; n != 0 {
		t.Errorf("%d writes in ten settled minutes, want 0", n)
	}
}

// TestHealthyTimeIsWrittenSeldom bounds the wear of the disk during a trial.
func TestHealthyTimeIsWrittenSeldom(t *testing.T) {
	s := lkgtest.NewStore()
	tr := open(t, s, lkg.Options{})
	must(t, tr.Assign(t.Context(), named("x")), tr.Start(t.Context(), lkg.Exit{}))
	decide(t, tr, lkg.Limits{Trial: time.Hour})
	before := s.Writes()
	for range 600 {
		if _, err := tr.Healthy(t.Context(), lkg.Health{Elapsed: time.Second}); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Writes() - before; n != 60 {
		t.Errorf("%d writes for 600 reports over ten minutes, want 60", n)
	}
	if again := open(t, s, lkg.Options{}).State().Soak; again.Accumulated != 10*time.Minute || again.Run != 0 {
		t.Errorf("after a restart: %+v, want ten minutes added up and a new run", again)
	}
}

// TestDecidingAgainGivesTheSame: the decision does not feed on itself.
func TestDecidingAgainGivesTheSame(t *testing.T) {
	s := lkgtest.NewStore()
	tr := open(t, s, lkg.Options{})
	l := lkg.Limits{CrashLoopThreshold: 1}
	must(t, tr.Assign(t.Context(), named("x")))
	for i := range 8 {
		must(t, tr.Start(t.Context(), lkg.Exit{Kind: lkg.ExitCrash}))
		first := decide(t, tr, l)
		writes := s.Writes()
		again := decide(t, tr, l)
		if again.Use != first.Use || again.Role != first.Role || again.Condition != first.Condition ||
			again.Alarm != first.Alarm {
			t.Errorf("start %d: %+v, then %+v", i, first.Condition, again.Condition)
		}
		if s.Writes() != writes {
			t.Errorf("start %d: deciding again wrote %d records", i, s.Writes()-writes)
		}
	}
}

// TestAskingWithoutAStartChangesNoEvidence: a tool that only looks.
func TestAskingWithoutAStartChangesNoEvidence(t *testing.T) {
	s := lkgtest.NewStore()
	tr := open(t, s, lkg.Options{})
	must(t, tr.Assign(t.Context(), named("x")), tr.Start(t.Context(), lkg.Exit{}))
	decide(t, tr, lkg.Limits{})
	writes := s.Writes()
	if v := decide(t, open(t, s, lkg.Options{}), lkg.Limits{}); v.OnTrial || s.Writes() != writes {
		t.Errorf("on trial %v, %d writes", v.OnTrial, s.Writes()-writes)
	}
	state, err := lkg.Load(t.Context(), s, "v1")
	must(t, err)
	v := lkg.Decide(lkg.Input{State: state, Recorded: true}, (&world{}).check)
	if !v.OnTrial || !v.Use.Same(named("x")) {
		t.Errorf("the state on disk gives %+v, want what production decided", v)
	}
}

func TestWrongRequestsAreNamed(t *testing.T) {
	ctx := t.Context()
	tr := open(t, lkgtest.NewStore(), lkg.Options{})
	for name, c := range map[string]struct{ got, want error }{
		"version": {
			func() error { _, err := lkg.NewTracker(ctx, lkgtest.NewStore(), lkg.Options{}); return err }(), lkg.ErrInvalid,
		},
		"local":       {tr.Assign(ctx, lkg.Ref{}), lkg.ErrInvalid},
		"white space": {tr.Assign(ctx, lkg.Ref{UID: "a b"}), lkg.ErrInvalid},
		"reject":      {tr.Reject(ctx, lkg.Ref{}, "why"), lkg.ErrInvalid},
		"plan":        {tr.PlanRestart(ctx, lkg.CauseCrash), lkg.ErrInvalid},
		"forget":      {tr.Forget(ctx, "uid"), fs.ErrNotExist},
		"promote":     {tr.Promote(ctx), lkg.ErrNotRunning},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	must(t, tr.Assign(ctx, named("x")), tr.Reject(ctx, named("x"), "by hand"))
	if err := tr.Promote(ctx); !errors.Is(err, lkg.ErrRejected) {
		t.Errorf("promoting a listed config: %v", err)
	}
}

// TestStoreErrorsAreTyped, through every method that writes; nothing that was asked for has happened then.
func TestStoreErrorsAreTyped(t *testing.T) {
	ctx := t.Context()
	s := lkgtest.NewStore()
	tr := open(t, s, lkg.Options{})
	must(t, tr.Assign(ctx, named("x")), tr.Start(ctx, lkg.Exit{}))
	decide(t, tr, lkg.Limits{Trial: time.Second, MinHealthyRun: 1})
	s.StopAt(1, lkgtest.StopFull)
	before := tr.State()
	_, health := tr.Healthy(ctx, lkg.Health{Elapsed: time.Minute})
	for name, err := range map[string]error{
		"Start": tr.Start(ctx, lkg.Exit{}), "Assign": tr.Assign(ctx, named("y")),
		"Plan":  tr.PlanRestart(ctx, lkg.CausePlanned),
		"Reset": tr.Reset(ctx), "SetDesired": tr.SetDesired(ctx, lkg.Outcome{Kind: lkg.DesiredEmpty}),
		"Reject": tr.Reject(ctx, named("z"), ""),
		"Forget": tr.Forget(ctx, "uid-z"), "Healthy": health,
	} {
		var rec *lkg.RecordError
		if !errors.As(err, &rec) || !errors.Is(err, lkgtest.ErrStopped) || rec.Op == "" || rec.Stream == "" {
			t.Errorf("%s: %v, want a RecordError around the store's", name, err)
		}
	}
	after := tr.State()
	if after.Current != before.Current || after.LastKnownGood != before.LastKnownGood || after.Desired != before.Desired ||
		after.Marker != before.Marker {
		t.Errorf("a refused write changed the state: %+v", after)
	}
}

// TestBeliefsInMemoryAreWrittenLater: what a full disk refused is written with the next chance (R-CS-19).
func TestBeliefsInMemoryAreWrittenLater(t *testing.T) {
	ctx := t.Context()
	s := lkgtest.NewStore()
	tr := open(t, s, lkg.Options{})
	must(t, tr.Assign(ctx, named("x")))
	s.StopAt(1, lkgtest.StopFull)
	if err := tr.Reject(ctx, named("x"), "by hand"); !errors.Is(err, lkgtest.ErrStopped) {
		t.Fatal(err)
	}
	s.StopAt(0, lkgtest.StopFull)
	must(t, tr.Start(ctx, lkg.Exit{}))
	decide(t, tr, lkg.Limits{})
	if bad := open(t, s, lkg.Options{}).State().Bad; len(bad) != 1 {
		t.Errorf("on disk: %+v", bad)
	}
}

// TestKeepComesBeforeTheRecord: the good config's own copy is stored before `last-known-good` names it.
func TestKeepComesBeforeTheRecord(t *testing.T) {
	ctx := t.Context()
	s := lkgtest.NewStore()
	broken := errors.New("disk full")
	kept, refuse := "", true
	tr := open(t, s, lkg.Options{Keep: func(_ context.Context, r lkg.Ref) error {
		if _, named := s.Records()["last-known-good"]; named {
			t.Error("named before it was kept")
		}
		kept = r.UID
		if refuse {
			return broken
		}
		return nil
	}})
	must(t, tr.Assign(ctx, named("x")), tr.Start(ctx, lkg.Exit{}))
	decide(t, tr, lkg.Limits{Trial: time.Second, MinHealthyRun: 1})
	p, err := tr.Healthy(ctx, lkg.Health{Elapsed: 2 * time.Second})
	if !errors.Is(err, broken) || p.Result != lkg.ResultWait {
		t.Errorf("got %q, %v; want to stay on trial", p.Result, err)
	}
	refuse = false
	if p, err = tr.Healthy(ctx, lkg.Health{Elapsed: 1}); err != nil || p.Result != lkg.ResultPromoted || kept != "uid-x" {
		t.Errorf("got %q, %v, kept %q", p.Result, err, kept)
	}
}

// slow is a store whose writes take an hour.
type slow struct{ *lkgtest.Store }

func (s slow) Put(ctx context.Context, stream string, payload []byte) error {
	select {
	case <-time.After(time.Hour):
		return s.Store.Put(ctx, stream, payload)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestWaitingEndsWithTheContext: no call waits for a stuck disk longer than its context, and State never waits.
func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := open(t, slow{lkgtest.NewStore()}, lkg.Options{})
		var wg sync.WaitGroup
		wg.Go(func() { must(t, tr.Start(t.Context(), lkg.Exit{})) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if _, err := tr.Decide(ctx, nil, (&world{}).check); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("waited %v, want a minute", waited)
		}
		if s := tr.State(); s.Version != "v1" {
			t.Errorf("state %+v", s)
		}
		wg.Wait()
		cancelled, stop := context.WithCancel(t.Context())
		stop()
		for name, err := range map[string]error{
			"Start": tr.Start(cancelled, lkg.Exit{}), "Reset": tr.Reset(cancelled), "Promote": tr.Promote(cancelled),
		} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want the end of the context", name, err)
			}
		}
	})
}

// TestManyCallers runs everything at once, for the race detector.
func TestManyCallers(t *testing.T) {
	ctx := t.Context()
	tr := open(t, lkgtest.NewStore(), lkg.Options{})
	must(t, tr.Assign(ctx, named("x")), tr.Start(ctx, lkg.Exit{}))
	var wg sync.WaitGroup
	for _, call := range []func() error{
		func() error { return tr.Start(ctx, lkg.Exit{}) },
		func() error { _, err := tr.Decide(ctx, nil, (&world{}).check); return err },
		func() error { _, err := tr.Healthy(ctx, lkg.Health{Elapsed: time.Second}); return err },
		func() error { return tr.SetDesired(ctx, lkg.Outcome{Kind: lkg.DesiredCorrect}) },
		func() error { return tr.Reject(ctx, named("y"), "") },
		func() error { s := tr.State(); s.Starts = append(s.Starts[:0], lkg.Start{}); return nil },
	} {
		wg.Go(func() {
			for range 50 {
				if err := call(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(tr.State().Starts); n != 36 {
		t.Errorf("%d starts, want the most that are kept", n)
	}
}

// TestBeliefStreamNames: R-CS-67. Safe, stable, and different for different versions.
// L-CS-24.
func TestBeliefStreamNames(t *testing.T) {
	seen := map[string]string{}
	for _, version := range []string{
		"v1.2.3", "1.2.3", "V1.2.3", "v1.2.3+build", "v1.2.3-build", "../../etc", "a/b", "v", "", " ", "ä",
		strings.Repeat("v", 300), strings.Repeat("v", 301),
	} {
		got := lkg.BeliefStream(version, "startups")
		dir, name, ok := strings.Cut(got, "/")
		if !ok || name != "startups" || !strings.HasPrefix(dir, "v") || len(dir) > 100 ||
			strings.Trim(dir, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
			t.Errorf("%q gives %q", version, got)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q both give %q", version, other, got)
		}
		seen[got] = version
	}
	if got := lkg.BeliefStream("v1.2.3", "bad-configs"); got != "v1.2.3/bad-configs" {
		t.Errorf("got %q", got)
	}
}
