// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"context"
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

// counting counts the calls of Put, also those that a store would find to be no writes.
type counting struct {
	*lkgtest.Store
	puts int
}

func (s *counting) Put(ctx context.Context, stream string, payload []byte) error {
	s.puts++
	return s.Store.Put(ctx, stream, payload)
}

// TestAssigningAgainKeepsTheTrial: the same content is the same assignment, whatever its resourceVersion.
func TestAssigningAgainKeepsTheTrial(t *testing.T) {
	s := &counting{Store: lkgtest.NewStore()}
	tr := open(t, s, lkg.Options{})
	x := named("x")
	must(t, tr.Assign(t.Context(), x))
	first := tr.State().Current
	must(t, tr.Assign(t.Context(), x))
	if s.puts != 1 {
		t.Errorf("%d writes, want 1", s.puts)
	}
	x.ResourceVersion = "2"
	must(t, tr.Assign(t.Context(), x))
	if now := tr.State().Current; now.ID != first.ID || now.Ref.ResourceVersion != "2" || !now.At.Equal(first.At) {
		t.Errorf("%+v became %+v", first, now)
	}
	x.Digest = "sha256:edited"
	must(t, tr.Assign(t.Context(), x))
	if now := tr.State().Current; now.ID == first.ID {
		t.Errorf("other content kept the assignment %+v", now)
	}
}

// TestFirstReasonStays: a listed config keeps the reason it was listed for.
func TestFirstReasonStays(t *testing.T) {
	tr := open(t, lkgtest.NewStore(), lkg.Options{})
	must(t, tr.Reject(t.Context(), named("x"), "first"), tr.Reject(t.Context(), named("x"), "second"))
	if bad := tr.State().Bad; len(bad) != 1 || bad[0].Reason != "rejected (UID: uid-x), cause: first" {
		t.Errorf("got %+v", bad)
	}
}

// TestResetRepairsUnreadableRecords: R-CS-55, also where a record can not be read.
func TestResetRepairsUnreadableRecords(t *testing.T) {
	for _, lost := range []string{"current", "last-known-good"} {
		s := lkgtest.NewStore()
		s.Set(lost, []byte(`{"configMapRef":`))
		must(t, open(t, s, lkg.Options{}).Reset(t.Context()))
		state := open(t, s, lkg.Options{}).State()
		if state.CurrentLost || state.LastKnownGoodLost || len(s.Records()[lost]) != 0 || lkg.Settled(state) != true {
			t.Errorf("%s: still %q, %+v", lost, s.Records()[lost], state.Notices)
		}
	}
}

// TestClockBeyondRecords: a clock that shows a year that no record can hold does not keep starts off the record.
func TestClockBeyondRecords(t *testing.T) {
	for _, year := range []int{-5000, 0, 9999, 12000} {
		s := lkgtest.NewStore()
		tr := open(t, s, lkg.Options{Now: func() time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }})
		must(t, tr.Assign(t.Context(), named("x")), tr.Start(t.Context(), lkg.Exit{}))
		if v := decide(t, tr, lkg.Limits{}); !v.OnTrial {
			t.Errorf("year %d: %+v", year, v.Condition)
		}
		if again := open(t, s, lkg.Options{}).State(); len(again.Notices) != 0 || len(again.Starts) != 1 {
			t.Errorf("year %d: read back %+v", year, again)
		}
	}
}

// TestFrozenClock: a clock that stands still changes no count.
func TestFrozenClock(t *testing.T) {
	s := lkgtest.NewStore()
	o := lkg.Options{Now: func() time.Time { return time.Unix(0, 0) }}
	must(t, open(t, s, o).Assign(t.Context(), named("x")))
	for want := range 4 {
		tr := open(t, s, o)
		must(t, tr.Start(t.Context(), lkg.Exit{Kind: lkg.ExitCrash}))
		if v := decide(t, tr, lkg.Limits{CrashLoopThreshold: 2}); v.Counted != want || v.OnTrial != (want <= 2) {
			t.Errorf("start %d: counted %d, on trial %v", want+1, v.Counted, v.OnTrial)
		}
	}
}

// TestRebootsDoNotPushOutCrashes: the short list keeps what counts.
func TestRebootsDoNotPushOutCrashes(t *testing.T) {
	m := lkgtest.NewMachine(t, *tolerant(10))
	m.Adopt(named("x"))
	for range 4 {
		m.Start()
		m.Crash()
	}
	for range 100 {
		m.Start()
		m.Restart(lkg.CausePlanned)
		m.Reboot()
	}
	if v := m.Start(); v.Counted != 4 {
		t.Errorf("counted %d, want the 4 crashes from before the reboots", v.Counted)
	}
}

func tolerant(threshold int) *lkgtest.Options {
	return &lkgtest.Options{
		Check: func(r lkg.Ref) lkg.Check {
			if nameOf(r) == "broken" {
				return lkg.Check{Outcome: lkg.CheckInvalid}
			}
			return lkg.Check{Outcome: lkg.CheckOK}
		},
		Limits: func(lkg.Ref) lkg.Limits { return lkg.Limits{Trial: time.Minute, CrashLoopThreshold: threshold} },
	}
}

func promoted(m *lkgtest.Machine, names ...string) {
	for _, n := range names {
		m.Adopt(named(n))
		m.Start()
		m.Promote()
	}
}

// TestOnlyALongRunForgivesAFallback: its crashes add up over short healthy runs.
func TestOnlyALongRunForgivesAFallback(t *testing.T) {
	m := lkgtest.NewMachine(t, *tolerant(1))
	promoted(m, "a")
	m.Adopt(named("broken"))
	for range lkg.FallbackThreshold + 1 {
		if v := m.Start(); nameOf(v.Use) != "a" {
			t.Fatalf("uses %s, want a until it crashed more than %d times", nameOf(v.Use), lkg.FallbackThreshold)
		}
		m.Healthy(40 * time.Second)
		m.Crash()
	}
	if v := m.Start(); v.Role != lkg.RoleLocal || v.Alarm == "" {
		t.Errorf("after the crashes of the fallback: %q, alarm %q", v.Role, v.Alarm)
	}
}

// TestNewGoodConfigForgivesFallbacks: what is held against a fallback ends with the last known good config it was held
// under.
func TestNewGoodConfigForgivesFallbacks(t *testing.T) {
	m := lkgtest.NewMachine(t, *tolerant(1))
	promoted(m, "a")
	m.Adopt(named("broken"))
	crashes(m, lkg.FallbackThreshold)
	if v := m.Start(); nameOf(v.Use) != "a" {
		t.Fatalf("uses %s, want a", nameOf(v.Use))
	}
	promoted(m, "b")
	m.Do("Reject", func(ctx context.Context, tr lkgtest.Tracker) error { return tr.Reject(ctx, named("b"), "by hand") })
	m.Restart(lkg.CausePlanned)
	crashes(m, lkg.FallbackThreshold)
	if v := m.Start(); nameOf(v.Use) != "a" {
		t.Errorf("uses %s, want a: it crashed no more than is tolerated since b was promoted", nameOf(v.Use))
	}
}

// crashes starts and crashes the node n times.
func crashes(m *lkgtest.Machine, n int) {
	for range n {
		m.Start()
		m.Crash()
	}
}

// TestACrashedFallbackIsNotKept: the config behind a new last known good one is the one that fallbacks had reached.
func TestACrashedFallbackIsNotKept(t *testing.T) {
	m := lkgtest.NewMachine(t, *tolerant(0))
	promoted(m, "a", "b")
	m.Adopt(named("broken"))
	crashes(m, lkg.FallbackThreshold+1)
	if v := m.Start(); v.Role != lkg.RolePrevious || nameOf(v.Use) != "a" {
		t.Fatalf("uses %s (%s), want a", nameOf(v.Use), v.Role)
	}
	promoted(m, "c")
	if got := m.Tracker().State(); nameOf(got.LastKnownGood) != "c" || nameOf(got.Previous) != "a" {
		t.Errorf("last known good is %s, before it %s; want c, a", nameOf(got.LastKnownGood), nameOf(got.Previous))
	}
}
