// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

// settledState is what a node has on disk that has run its config for long: the longest list of starts, and fifty bad
// configs.
func settledState(t testing.TB) lkg.State {
	store := lkgtest.NewStore()
	open := func() *lkg.Tracker {
		tr, err := lkg.NewTracker(t.Context(), store, lkg.Options{Version: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	tr := open()
	for i := range 50 {
		must(t, tr.Reject(t.Context(), named(strconv.Itoa(i)), "by hand"))
	}
	must(t, tr.Assign(t.Context(), named("a")), tr.SetDesired(t.Context(), lkg.Outcome{Kind: lkg.DesiredCorrect}))
	for i := range 40 {
		must(t, tr.Start(t.Context(), lkg.Exit{Kind: lkg.ExitPlanned}))
		if _, err := tr.Decide(t.Context(), nil, fine); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			must(t, tr.Promote(t.Context()))
		}
	}
	s, err := lkg.Load(t.Context(), store, "v1")
	must(t, err)
	return s
}

func fine(lkg.Ref) lkg.Check { return lkg.Check{Outcome: lkg.CheckOK, Origin: lkg.OriginInit} }

// TestDecidingTheSameAllocatesNothing: a start at which nothing changed is decided without an allocation, whether it
// uses the last known good config or the local one.
func TestDecidingTheSameAllocatesNothing(t *testing.T) {
	local := settledState(t)
	local.Current, local.LastKnownGood = lkg.Assignment{}, lkg.Ref{}
	for name, s := range map[string]lkg.State{"a": settledState(t), "local": local} {
		in := lkg.Input{State: s, Recorded: true}
		var v lkg.Verdict
		if n := testing.AllocsPerRun(100, func() { v = lkg.Decide(in, fine) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
		if v.Role != lkg.RoleCurrent || nameOf(v.Use) != name || v.OnTrial || v.Condition.Status != lkg.StatusTrue {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// BenchmarkDecide is one decision from memory, with the longest list of starts and fifty bad configs.
func BenchmarkDecide(b *testing.B) {
	full := onTrial("x", "a", "b")
	for len(full.Starts) < 36 {
		full.Starts = append(full.Starts,
			lkg.Start{At: time.Unix(int64(len(full.Starts)), 0), Assignment: "0", N: 1, Cause: lkg.CauseReboot})
	}
	for i := range 50 {
		full.Bad = append(full.Bad, lkg.BadEntry{Ref: lkg.Ref{UID: "uid-" + time.Duration(i).String()}, Reason: "listed"})
	}
	good := full
	good.LastKnownGood = named("x")
	listed := full
	listed.Bad = append(bad("x"), full.Bad...)
	limits := func(lkg.Ref) lkg.Limits { return lkg.Limits{CrashLoopThreshold: 10} }
	for name, s := range map[string]lkg.State{
		"unchanged": settledState(b), "known-good": good, "on-trial": full, "rolled-back": listed,
	} {
		in := lkg.Input{State: s, Recorded: true, Limits: limits}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v := lkg.Decide(in, fine); v.Role == "" {
					b.Fatal("no verdict")
				}
			}
		})
	}
}
