// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

// A caseNode is a node whose runs end as a test says.
type caseNode struct {
	t      *testing.T
	store  *lkgtest.Store
	tr     *lkg.Tracker
	boot   int
	binary string
	limits lkg.Limits
	exit   lkg.Exit
	v      lkg.Verdict
	deaths map[string]int // runs that did not live, by config
}

func newCaseNode(t *testing.T, threshold int, good ...string) *caseNode {
	t.Helper()
	n := &caseNode{t: t, store: lkgtest.NewStore(), deaths: map[string]int{}, limits: lkg.Limits{
		Trial: 10 * time.Minute, MinHealthyRun: 5 * time.Minute, ProbeDeadline: time.Minute, CrashLoopThreshold: threshold,
	}}
	n.openTracker()
	for _, name := range good {
		must(t, n.tr.Assign(t.Context(), named(name)))
		n.startRun()
		must(t, n.tr.Promote(t.Context()))
	}
	return n
}

func (n *caseNode) openTracker() {
	n.tr = open(n.t, n.store, lkg.Options{BootID: fmt.Sprint("boot-", n.boot), Binary: func() string { return n.binary }})
}

func (n *caseNode) startRun() string {
	n.t.Helper()
	must(n.t, n.tr.Start(n.t.Context(), n.exit))
	n.v = decide(n.t, n.tr, n.limits)
	n.exit = lkg.Exit{}
	return nameOf(n.v.Use)
}

// An end is how a run ends: a zero one lives, until it asks for a restart or d is over.
type end struct {
	exit lkg.Exit
	boot bool
}

func diesOf(signature string) *end {
	return &end{exit: lkg.Exit{Kind: lkg.ExitCrash, Detail: "exit status 1", Signature: signature}}
}

// playRuns starts the node up to steps times. Each run ends as fate says about the config in it; nil lives for an
// hour.
func (n *caseNode) playRuns(steps int, fate func(name string) *end) {
	n.t.Helper()
	for range steps {
		name := n.startRun()
		e := fate(name)
		if e == nil {
			if !n.liveOn() {
				return
			}
			continue
		}
		n.deaths[name]++
		n.exit = e.exit
		if e.boot {
			n.boot++
			n.openTracker()
		}
	}
}

// liveOn reports an hour of health, and whether a restart was asked for.
func (n *caseNode) liveOn() (restart bool) {
	n.t.Helper()
	for range 60 {
		p, err := n.tr.Healthy(n.t.Context(), lkg.Health{Elapsed: time.Minute})
		must(n.t, err)
		if p.Result == lkg.ResultRestart {
			must(n.t, n.tr.PlanRestart(n.t.Context(), lkg.CausePlanned))
			return true
		}
	}
	return false
}

// wantUse fails the test unless that config is used in the end, and those are listed as bad.
func (n *caseNode) wantUse(use string, status lkg.Status, rejected ...string) {
	n.t.Helper()
	if got := n.startRun(); got != use || n.v.Condition.Status != status {
		n.t.Errorf("uses %s (%+v), want %s and %s; deaths %v", got, n.v.Condition, use, status, n.deaths)
	}
	var listed []string
	s := n.tr.State()
	for _, b := range s.Bad {
		listed = append(listed, nameOf(b.Ref))
	}
	if fmt.Sprint(listed) != fmt.Sprint(rejected) {
		n.t.Errorf("listed as bad are %v, want %v: %+v", listed, rejected, s.Bad)
	}
}

// TestAConfigIsRejectedByAWitness: R-CS-64, L-CS-36. A config that crashes is left after its threshold, tried again
// after one below was healthy, and then rejected: on trial, and after its promotion.
func TestAConfigIsRejectedByAWitness(t *testing.T) {
	for threshold := range 11 {
		for _, promote := range []bool{false, true} {
			n := newCaseNode(t, threshold, "a")
			must(t, n.tr.Assign(t.Context(), named("x")))
			tolerated := threshold
			if promote {
				n.startRun()
				must(t, n.tr.Promote(t.Context()))
				n.exit = lkg.Exit{Kind: lkg.ExitPlanned}
				tolerated = max(threshold, lkg.FallbackThreshold)
			}
			n.playRuns(60, func(name string) *end {
				if name == "x" {
					return diesOf("exit status 1: open /x.crt: no such file or directory")
				}
				return nil
			})
			n.wantUse("a", lkg.StatusFalse, "x")
			if got, want := n.deaths["x"], 2*(tolerated+1); got != want || n.deaths["a"] != 0 {
				t.Errorf("threshold %d, promoted %t: %d deaths of x, want %d", threshold, promote, got, want)
			}
			if e := n.v.Rejected; e == nil || !strings.Contains(e.Signature, "/x.crt") || e.Class() != "CrashLoop" {
				t.Errorf("rejected by %+v, want what x died of", e)
			}
		}
	}
}

// TestACommonCauseBlamesNoConfig: L-CS-36. While something is away that every config needs, all of them die. Whenever
// that begins, and however long it lasts, nothing is rejected, and the wanted config is in use when it is over; what
// lies below is not burnt.
func TestACommonCauseBlamesNoConfig(t *testing.T) {
	for _, signature := range []string{"connect: no such file or directory", ""} {
		for from := range 4 {
			for lasts := 1; lasts < 60; lasts += 3 {
				n := newCaseNode(t, 2, "b", "a")
				must(t, n.tr.Assign(t.Context(), named("x")))
				if from == 3 { // after the trial
					n.startRun()
					must(t, n.tr.Promote(t.Context()))
				}
				n.playRuns(from, func(string) *end { return &end{exit: lkg.Exit{Kind: lkg.ExitPlanned}} })
				n.playRuns(lasts, func(string) *end { return diesOf(signature) })
				n.playRuns(20, func(string) *end { return nil })
				n.wantUse("x", lkg.StatusTrue)
				if s := n.tr.State(); nameOf(s.LastKnownGood) != "x" || s.Case != nil {
					t.Errorf("from %d, for %d runs: last known good is %s, case %+v", from, lasts, nameOf(s.LastKnownGood), s.Case)
				}
				if t.Failed() {
					t.Fatalf("signature %q, from start %d, for %d runs", signature, from, lasts)
				}
			}
		}
	}
}

// TestSomethingThatLivesIsFound: two configs that die alike are both to blame where the one below them lives.
func TestSomethingThatLivesIsFound(t *testing.T) {
	for _, alive := range []string{"b", "local"} {
		n := newCaseNode(t, 1, "b", "a")
		must(t, n.tr.Assign(t.Context(), named("x")))
		n.playRuns(80, func(name string) *end {
			if name == alive || name == "local" {
				return nil
			}
			return diesOf("exit status 1: open /x.crt: no such file or directory")
		})
		want := []string{"x", "a", "b"}
		if alive == "b" {
			want = want[:2]
		}
		n.wantUse(alive, lkg.StatusFalse, want...)
	}
}

// TestNothingLives: L-CS-36. Where not even the local config lives, the node goes on trying what is wanted, and says
// so.
func TestNothingLives(t *testing.T) {
	n := newCaseNode(t, 0, "a")
	must(t, n.tr.Assign(t.Context(), named("x")))
	seen := ""
	n.playRuns(50, func(string) *end {
		if n.v.Role == lkg.RoleCurrent && n.v.Case != nil {
			seen = string(n.v.Condition.Status) + " " + n.v.Condition.Reason
		}
		return diesOf("no space left on device")
	})
	if want := "Unknown not the config: no space left on device; also with (UID: uid-a); also with (init)"; seen != want {
		t.Errorf("says %q, want %q", seen, want)
	}
	if s := n.tr.State(); len(s.Bad) != 0 || n.deaths["x"] < 10 {
		t.Errorf("rejected %+v, x was tried %d times; want nothing rejected, and x tried again and again",
			s.Bad, n.deaths["x"])
	}
}

// TestWhatIsNotTheConfigsCountsNothing: R-CS-64. A program that can't be executed, and a world that is not there,
// count against no config in any role; the condition says what it is until something is healthy.
func TestWhatIsNotTheConfigsCountsNothing(t *testing.T) {
	for _, fault := range []lkg.Fault{lkg.FaultNotExecuted, lkg.FaultEnvironment} {
		for _, role := range []string{"trial", "promoted", "fallback", "local"} {
			n := newCaseNode(t, 0, "b", "a")
			use := "x"
			switch role {
			case "promoted":
				use = "a"
			case "fallback":
				use = "a"
				must(t, n.tr.Assign(t.Context(), named("x")), n.tr.Reject(t.Context(), named("x"), "by hand"))
			case "local":
				use = "local"
				must(t, n.tr.Reset(t.Context()))
			default:
				must(t, n.tr.Assign(t.Context(), named("x")))
			}
			n.startRun()
			n.exit = lkg.Exit{Kind: lkg.ExitPlanned}
			n.playRuns(50, func(string) *end {
				return &end{exit: lkg.Exit{Kind: lkg.ExitCrash, Fault: fault, Signature: "exec format error"}}
			})
			status := lkg.StatusUnknown
			if role == "fallback" {
				n.wantUse(use, lkg.StatusFalse, "x")
				continue
			}
			n.wantUse(use, status)
			if got := n.v.Condition.Reason; got != "not the config: exec format error" {
				t.Errorf("%s, %s: says %q", fault, role, got)
			}
		}
	}
}

// TestBootsAndAgentsHaveABoundOfTheirOwn: R-CS-42. A config that takes the machine, or the agent, down in its trial is
// left after 3 of these, and rejected by a witness that lives long; three deaths of the agent reject nothing. Where
// all configs boot alike, none is.
func TestBootsAndAgentsHaveABoundOfTheirOwn(t *testing.T) {
	boot := &end{boot: true}
	agent := &end{exit: lkg.Exit{Kind: lkg.ExitCrash, Fault: lkg.FaultSupervisor}}
	for name, e := range map[string]*end{"unplanned boots: ": boot, "deaths of the agent: ": agent} {
		n := newCaseNode(t, 10, "a")
		must(t, n.tr.Assign(t.Context(), named("x")))
		n.playRuns(3, func(string) *end { return e })
		n.wantUse("x", lkg.StatusTrue)
		n.exit = e.exit
		if e.boot {
			n.boot++
			n.openTracker()
		}
		if got := n.startRun(); got != "a" || !strings.Contains(n.v.Condition.Reason, name) {
			t.Errorf("after 4 of %q it uses %s: %+v, want a", name, got, n.v.Condition)
		}
		n.playRuns(60, func(use string) *end {
			if use == "x" {
				return e
			}
			return nil
		})
		n.wantUse("a", lkg.StatusFalse, "x")

		n = newCaseNode(t, 10, "a")
		must(t, n.tr.Assign(t.Context(), named("x")))
		n.playRuns(60, func(string) *end { return e })
		n.playRuns(20, func(string) *end { return nil })
		n.wantUse("x", lkg.StatusTrue)
	}
}

// TestBytesAreJudgedOnce: R-CS-58. Another object with the same bytes is not tried; another program is, with the same
// object; forgetting one forgets all of its bytes.
func TestBytesAreJudgedOnce(t *testing.T) {
	n := newCaseNode(t, 0, "a")
	n.binary = "v1.36"
	must(t, n.tr.Assign(t.Context(), named("x")))
	fate := func(name string) *end {
		if name == "a" || name == "local" || n.binary == "v1.37" {
			return nil
		}
		return diesOf("exit status 1")
	}
	n.playRuns(20, fate)
	n.wantUse("a", lkg.StatusFalse, "x")
	died := n.deaths["x"]
	for i := range 5 {
		again := named("x")
		again.UID = fmt.Sprint("uid-copy", i)
		must(t, n.tr.Assign(t.Context(), again))
		n.playRuns(3, fate)
		if n.v.Rejected == nil || n.v.Condition.Reason != n.v.Rejected.Reason || n.deaths["copy"+fmt.Sprint(i)] != 0 {
			t.Errorf("copy %d: %+v, deaths %v", i, n.v.Condition, n.deaths)
		}
	}
	if n.deaths["x"] != died {
		t.Errorf("%d deaths, want %d: the bytes were judged", n.deaths["x"], died)
	}
	must(t, n.tr.Forget(t.Context(), "uid-copy4"))
	if s := n.tr.State(); len(s.Bad) != 0 {
		t.Errorf("after forgetting the copy that is assigned: %+v", s.Bad)
	}
	n.playRuns(20, fate)
	n.wantUse("a", lkg.StatusFalse, "copy4")
	n.binary = "v1.37"
	n.playRuns(20, fate)
	n.wantUse("copy4", lkg.StatusTrue, "copy4")
	if s := n.tr.State(); nameOf(s.LastKnownGood) != "copy4" {
		t.Errorf("last known good is %+v, want what another program runs well", s.LastKnownGood)
	}
}

// TestWitnessedEndsNeedASecondTry: what is asked at an end is not all that can fail. A config is tried again also where
// everything answered at each end: 3 deaths, and 3 more.
func TestWitnessedEndsNeedASecondTry(t *testing.T) {
	n := newCaseNode(t, 2, "a")
	must(t, n.tr.Assign(t.Context(), named("x")))
	n.playRuns(20, func(name string) *end {
		if name != "x" {
			return nil
		}
		e := diesOf("exit status 1")
		e.exit.Witnessed = true
		return e
	})
	n.wantUse("a", lkg.StatusFalse, "x")
	if n.deaths["x"] != 6 {
		t.Errorf("%d deaths, want 6", n.deaths["x"])
	}
}

// TestAPersonEndsASuspicion: forgetting the assigned config while it is under suspicion tries it again.
func TestAPersonEndsASuspicion(t *testing.T) {
	n := newCaseNode(t, 0, "a")
	must(t, n.tr.Assign(t.Context(), named("x")))
	n.playRuns(1, func(string) *end { return diesOf("") })
	n.wantUse("a", lkg.StatusFalse)
	must(t, n.tr.Forget(t.Context(), "uid-x"))
	n.exit = lkg.Exit{Kind: lkg.ExitPlanned}
	n.wantUse("x", lkg.StatusTrue)
	if s := n.tr.State(); s.Case != nil {
		t.Errorf("the case is still open: %+v", s.Case)
	}
}

// TestLastLinesAreKept: of the newest end alone, and bounded.
func TestLastLinesAreKept(t *testing.T) {
	n := newCaseNode(t, 0, "a")
	must(t, n.tr.Assign(t.Context(), named("x")))
	lines := strings.Split(strings.Repeat(strings.Repeat("x", 1000)+"\n", 40), "\n")[:40]
	lines[39] = "failed to load the certificate"
	n.playRuns(5, func(name string) *end {
		if name != "x" {
			return nil
		}
		e := diesOf("exit status 1")
		e.exit.Last = lines
		return e
	})
	n.startRun()
	s := n.tr.State()
	if b := s.BadEntry(named("x")); b == nil || len(b.Last) != 5 || b.Last[4] != lines[39] {
		t.Errorf("the entry is %+v, want the newest 4 KiB", b)
	}
	for i, st := range s.Starts[:len(s.Starts)-1] {
		if len(st.Last) != 0 {
			t.Errorf("start %d keeps %d lines", i, len(st.Last))
		}
	}
}
