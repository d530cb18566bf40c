// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

// TestACountedStartIsOnRecordOnce: R-CS-62, R-CS-64. Who comes second in one start appends nothing and decides the
// same, also where the start before has crashed; where the last start on record is of another boot or of another
// assignment, or was announced to be over, it is one more that counts against nobody.
func TestACountedStartIsOnRecordOnce(t *testing.T) {
	store := lkgtest.NewMachine(t, lkgtest.Options{}).Store
	tracker := func(boot string) *lkg.Tracker { return open(t, store, lkg.Options{BootID: boot}) }
	causes := func(tr *lkg.Tracker) (all []lkg.Cause) {
		st := tr.State()
		for _, s := range st.Starts {
			all = append(all, s.Cause)
		}
		var times []string
		must(t, json.Unmarshal(store.Records()["v1/startups"], &times))
		if len(times) != len(all) {
			t.Errorf("startups has %d times, and there are %d starts", len(times), len(all))
		}
		return all
	}
	limits := lkg.Limits{CrashLoopThreshold: 1}
	wants := func(what string, tr *lkg.Tracker, counted int, want ...lkg.Cause) {
		t.Helper()
		v := decide(t, tr, limits)
		if got := causes(tr); !slices.Equal(got, want) || v.Counted != counted || !v.OnTrial {
			t.Errorf("%s: starts are %v, counted %d, want %v and %d; %+v", what, got, v.Counted, want, counted, v.Ignored)
		}
	}
	must(t, tracker("b1").Assign(t.Context(), named("x")))
	var tr *lkg.Tracker
	for _, e := range []lkg.Exit{{}, {Kind: lkg.ExitCrash}} {
		guard := tracker("b1")
		must(t, guard.Start(t.Context(), e))
		decide(t, guard, limits)
		tr = tracker("b1")
		must(t, tr.Start(t.Context(), lkg.Exit{Kind: lkg.ExitCounted}))
	}
	wants("a guard and its main process, twice", tr, 1, lkg.CauseUnknown, lkg.CauseCrash)

	tr = tracker("b2")
	must(t, tr.Start(t.Context(), lkg.Exit{Kind: lkg.ExitCounted}))
	wants("in another boot", tr, 1, lkg.CauseUnknown, lkg.CauseCrash, lkg.CauseReboot)
	must(t, tr.PlanRestart(t.Context(), lkg.CausePlanned), tr.Start(t.Context(), lkg.Exit{Kind: lkg.ExitCounted}))
	wants("after a planned end", tr, 1, lkg.CauseUnknown, lkg.CauseCrash, lkg.CauseReboot, lkg.CausePlanned)
	must(t, tr.Assign(t.Context(), named("y")), tr.Start(t.Context(), lkg.Exit{Kind: lkg.ExitCounted}))
	wants("of another assignment", tr, 0, lkg.CauseUnknown, lkg.CauseCrash, lkg.CauseReboot, lkg.CausePlanned,
		lkg.CausePlanned)
}
