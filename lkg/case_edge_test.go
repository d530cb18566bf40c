// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
)

// reportFor reports for d what the probes say, every ten seconds, and returns the first answer that is more than
// "wait".
func (n *caseNode) reportFor(d time.Duration, probes func(round int) []lkg.ProbeResult) lkg.Progress {
	n.t.Helper()
	for round := range int(d / (10 * time.Second)) {
		p, err := n.tr.Healthy(n.t.Context(), lkg.Health{Elapsed: 10 * time.Second, Probes: probes(round)})
		must(n.t, err)
		if p.Result == lkg.ResultRestart || p.Result == lkg.ResultRejected {
			return p
		}
	}
	return lkg.Progress{}
}

var errSick = errors.New("sick")

// TestNoAnswerHidesNoFailure: R-CS-61, C-36. A probe that can't tell does not hide one that fails, all the while or in
// each second round.
func TestNoAnswerHidesNoFailure(t *testing.T) {
	silent := lkg.ProbeResult{Name: "node-ready", Required: true, Unknown: true, Err: errSick}
	for name, every := range map[string]int{"all the while": 1, "each second round": 2} {
		t.Run(name, func(t *testing.T) {
			n := newCaseNode(t, 2, "v1")
			must(t, n.tr.Assign(t.Context(), named("v2")))
			n.startRun()
			p := n.reportFor(10*time.Minute, func(round int) []lkg.ProbeResult {
				sick := lkg.ProbeResult{Name: "healthz", Required: true, Err: errSick}
				if round%every != 0 {
					return []lkg.ProbeResult{silent}
				}
				return []lkg.ProbeResult{silent, sick}
			})
			if p.Result != lkg.ResultRestart {
				t.Errorf("after 10 min of a failing probe: %q, %s, want that the config is left", p.Result, p.Why)
			}
		})
	}
}

// TestForgetIsATry: C-36. A promoted config that was rejected for its crashes is tried again as soon as a person says
// so.
func TestForgetIsATry(t *testing.T) {
	n := newCaseNode(t, 2, "v1", "v2")
	for len(n.tr.State().Bad) == 0 {
		if n.startRun() == "v2" {
			n.exit = diesOf("no certificate").exit
			continue
		}
		n.reportFor(time.Hour, func(int) []lkg.ProbeResult { return nil })
	}
	must(t, n.tr.Forget(t.Context(), named("v2").UID))
	if use := n.startRun(); use != "v2" {
		t.Errorf("after Forget %s is used, want v2; case %+v", use, n.v.Case)
	}
}

// TestAFallbackIsJudgedInARetry: C-36. What runs because the suspect could not be had is left as well if it is sick.
func TestAFallbackIsJudgedInARetry(t *testing.T) {
	n := newCaseNode(t, 2, "v1", "v2")
	must(t, n.tr.Assign(t.Context(), named("v3")))
	for n.startRun() == "v3" {
		n.exit = diesOf("").exit
	}
	if p := n.reportFor(time.Hour, func(int) []lkg.ProbeResult { return nil }); p.Result != lkg.ResultRestart {
		t.Fatalf("with a healthy witness: %+v, want a second try", p)
	}
	must(t, n.tr.Start(t.Context(), lkg.Exit{}))
	undecided := func(r lkg.Ref) lkg.Check {
		if r.UID == named("v3").UID {
			return lkg.Check{Outcome: lkg.CheckUndecided, Err: errSick}
		}
		return lkg.Check{Outcome: lkg.CheckOK}
	}
	limits := func(lkg.Ref) lkg.Limits { return n.limits }
	v, err := n.tr.Decide(t.Context(), limits, undecided)
	must(t, err)
	if nameOf(v.Use) != "v2" || v.Case == nil || v.Case.Phase != "retry" {
		t.Fatalf("uses %+v, case %+v, want v2 in a retry", v.Use, v.Case)
	}
	sick := []lkg.ProbeResult{{Name: "healthz", Required: true, Err: errSick}}
	if p := n.reportFor(time.Hour, func(int) []lkg.ProbeResult { return sick }); p.Result != lkg.ResultRestart {
		t.Errorf("after an hour of a failing probe: %q, %s, want that it is left", p.Result, p.Why)
	}
}

// TestAFallbackIsSettled: C-36. A fallback that is healthy for its trial hangs on nothing any more, whatever led to it.
func TestAFallbackIsSettled(t *testing.T) {
	n := newCaseNode(t, 2, "v1")
	must(t, n.tr.Assign(t.Context(), named("v2")))
	must(t, n.tr.Reject(t.Context(), named("v2"), "a person"))
	must(t, n.tr.PlanRestart(t.Context(), lkg.CausePlanned))
	n.startRun()
	n.reportFor(time.Hour, func(int) []lkg.ProbeResult { return nil })
	starts := n.tr.State().Starts
	if last := starts[len(starts)-1]; !last.Settled || last.Used.Role != lkg.RoleLastKnownGood {
		t.Errorf("the start of a healthy fallback is not settled: %+v", last)
	}
}

// TestDamagedCasesAreNone: R-CS-55. A case with numbers that no code writes is as if it were not there.
func TestDamagedCasesAreNone(t *testing.T) {
	for _, damage := range []string{`"rounds":-1`, `"counted":-1`, `"witness":-1`} {
		record := `{"case":{"suspect":{"role":"current","uid":"v1"},"phase":"common","reason":"r","witness":1,"acquit":1,` +
			damage + `}}`
		if c := lkg.DecodeCase(record); c != nil {
			t.Errorf("%s: case %+v, want none", damage, c)
		}
	}
}

// TestOnlyNewRejectionsKeepTheirLines: R-CS-57. Only the newest rejections keep their lines.
func TestOnlyNewRejectionsKeepTheirLines(t *testing.T) {
	with := 0
	for _, e := range lkg.ListBad(100, []string{"a line"}) {
		if len(e.Last) > 0 {
			with++
		}
	}
	if with != 16 {
		t.Errorf("%d of 100 rejections keep their lines, want 16", with)
	}
}

// TestASecondTryTellsCrashesFromBoots: C-36. A suspect of crashes that is tried again is compared once more for more
// than 3 boots, also where its crashes are as many as it tolerates. It is listed for one crash more than that.
func TestASecondTryTellsCrashesFromBoots(t *testing.T) {
	crash := diesOf("exit status 1")
	crash.exit.Last = []string{"the newest line"}
	for name, c := range map[string]struct {
		ends               string // of the runs of the second try: c is a crash, b a boot
		use                string
		counted, threshold int
		bad                []string
	}{
		"no end":                         {"", "x", 0, 2, nil},
		"boots as many as are tolerated": {"bbb", "x", 0, 2, nil},
		"one boot more":                  {"bbbb", "a", 4, 3, nil},
		"crashes as many as it tolerates, and one boot more": {"ccbbbb", "a", 4, 3, nil},
		"one crash more": {"ccc", "a", 3, 2, []string{"x"}},
		"one crash more, and boots as many as are tolerated": {"bbbccc", "a", 3, 2, []string{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newCaseNode(t, 2, "a")
			must(t, n.tr.Assign(t.Context(), named("x")))
			n.playRuns(3, func(string) *end { return diesOf("exit status 1") })
			n.startRun()
			n.liveOn() // what is below lives: x is tried again
			for _, e := range c.ends {
				n.playRuns(1, func(string) *end { return map[rune]*end{'c': crash, 'b': {boot: true}}[e] })
			}
			n.wantUse(c.use, map[string]lkg.Status{"x": lkg.StatusUnknown, "a": lkg.StatusFalse}[c.use], c.bad...)
			if n.v.Counted != c.counted || n.v.Threshold != c.threshold {
				t.Errorf("%d held against x, tolerated %d, want %d and %d", n.v.Counted, n.v.Threshold, c.counted, c.threshold)
			}
			if again := c.use == "a" && c.bad == nil; (n.v.Case != nil && n.v.Case.Phase == "compare") != again {
				t.Errorf("case %+v, want that x is compared once more: %t", n.v.Case, again)
			}
			if e := n.v.Rejected; e != nil && !slices.Equal(e.Last, crash.exit.Last) {
				t.Errorf("listed with the lines %q, want those of its newest end", e.Last)
			}
		})
	}
}
