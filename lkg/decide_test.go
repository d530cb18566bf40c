// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
)

// A world answers checks and remembers what it was asked.
type world struct {
	checks map[string]lkg.Check
	asked  []string
	limits []string
}

func (w *world) check(r lkg.Ref) lkg.Check {
	w.asked = append(w.asked, nameOf(r))
	if c, ok := w.checks[nameOf(r)]; ok {
		return c
	}
	return lkg.Check{Outcome: lkg.CheckOK, Origin: lkg.OriginInit}
}

func (w *world) limitsOf(r lkg.Ref) lkg.Limits {
	w.limits = append(w.limits, nameOf(r))
	return lkg.Limits{}
}

func bad(names ...string) (out []lkg.BadEntry) {
	for _, n := range names {
		out = append(out, lkg.BadEntry{Ref: named(n), Reason: "failed to validate current (UID: uid-" + n + ")"})
	}
	return out
}

func onTrial(name, good, previous string) lkg.State {
	return lkg.State{
		Current: lkg.Assignment{Ref: named(name), ID: "1"}, LastKnownGood: named(good), Previous: named(previous),
		Starts: []lkg.Start{{Assignment: "1", N: 1, Cause: lkg.CauseAdoption}},
	}
}

// TestChecksAreLazy: the baseline is always checked (R-CS-52), a listed config never (R-CS-60), nothing twice, and
// limits are asked only about configs whose check was OK, and against which something is held or may be.
func TestChecksAreLazy(t *testing.T) {
	invalid := lkg.Check{Outcome: lkg.CheckInvalid}
	for _, c := range []struct {
		name   string
		in     lkg.Input
		checks map[string]lkg.Check
		asked  string
		limits string
		use    string
	}{
		{"local config", lkg.Input{}, nil, "local", "", "local"},
		{
			"bad baseline", lkg.Input{State: onTrial("x", "a", "b"), Recorded: true}, map[string]lkg.Check{"local": invalid},
			"local", "", "local",
		},
		{"on trial", lkg.Input{State: onTrial("x", "a", "b"), Recorded: true}, nil, "local x", "x", "x"},
		{"known good", lkg.Input{State: onTrial("a", "a", "b"), Recorded: true}, nil, "local a", "", "a"},
		{"listed", lkg.Input{State: with(onTrial("x", "a", "b"), bad("x")), Recorded: true}, nil, "local a", "", "a"},
		{
			"all listed", lkg.Input{State: with(onTrial("x", "a", "b"), bad("x", "a", "b")), Recorded: true}, nil, "local", "",
			"local",
		},
		{
			"invalid", lkg.Input{State: onTrial("x", "a", "b"), Recorded: true}, map[string]lkg.Check{"x": invalid}, "local x a",
			"", "a",
		},
		{
			"known good is invalid now", lkg.Input{State: onTrial("a", "a", "b"), Recorded: true},
			map[string]lkg.Check{"a": invalid}, "local a b", "", "b",
		},
		{
			"known good is unavailable", lkg.Input{State: onTrial("a", "a", "b"), Recorded: true}, map[string]lkg.Check{"a": {}},
			"local a b", "", "b",
		},
		{
			"nothing else is usable", lkg.Input{State: onTrial("x", "a", "b"), Recorded: true},
			map[string]lkg.Check{"x": invalid, "a": {}, "b": invalid}, "local x a b", "", "local",
		},
		{"not on record", lkg.Input{State: onTrial("x", "a", "b")}, nil, "local x a", "x", "a"},
	} {
		w := &world{checks: c.checks}
		c.in.Limits = w.limitsOf
		v := lkg.Decide(c.in, w.check)
		if got := strings.Join(w.asked, " "); got != c.asked {
			t.Errorf("%s: checked %q, want %q", c.name, got, c.asked)
		}
		if got := strings.Join(w.limits, " "); got != c.limits {
			t.Errorf("%s: limits of %q, want %q", c.name, got, c.limits)
		}
		if nameOf(v.Use) != c.use {
			t.Errorf("%s: uses %s, want %s", c.name, nameOf(v.Use), c.use)
		}
	}
}

// TestWhatIsNotDecidedIsNotBad: what judges a config gave no answer, so it is not used, not listed, and its reason
// is that of the judge.
func TestWhatIsNotDecidedIsNotBad(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{
			errors.New("no answer yet"),
			"failed to sync, desired config unclear, cause: judging current (UID: uid-x): no answer yet",
		},
		{nil, "failed to sync, desired config unclear, cause: judging current (UID: uid-x): undecided"},
	} {
		w := &world{checks: map[string]lkg.Check{"x": {Outcome: lkg.CheckUndecided, Err: c.err}}}
		v := lkg.Decide(lkg.Input{State: onTrial("x", "a", "b"), Recorded: true}, w.check)
		if nameOf(v.Use) != "a" || v.Rejected != nil || v.Condition.Status != lkg.StatusUnknown ||
			v.Condition.Reason != c.want || v.Detail != c.want {
			t.Errorf("it uses %s because of %+v (%s), rejects %+v; want a because of %q, and nothing rejected",
				nameOf(v.Use), v.Condition, v.Detail, v.Rejected, c.want)
		}
	}
	v := lkg.Decide(lkg.Input{State: onTrial("a", "a", "b"), Recorded: true},
		(&world{checks: map[string]lkg.Check{"a": {Outcome: lkg.CheckUndecided}}}).check)
	if nameOf(v.Use) != "b" || len(v.Steps) != 2 || v.Steps[1].Why != "its check says undecided" {
		t.Errorf("where nobody can judge the last known good config, it uses %s after %+v, want the one before",
			nameOf(v.Use), v.Steps)
	}
}

func with(s lkg.State, entries []lkg.BadEntry) lkg.State {
	s.Bad = entries
	return s
}

// TestRefusalIsTyped: R-CS-52, R-CS-53; the payload-free cause is in the chain.
func TestRefusalIsTyped(t *testing.T) {
	cause := errors.New("port: must be positive")
	v := lkg.Decide(lkg.Input{State: onTrial("x", "a", "b"), Recorded: true}, func(lkg.Ref) lkg.Check {
		return lkg.Check{Outcome: lkg.CheckUndecodable, Err: cause, Origin: lkg.OriginInit}
	})
	if v.Refuse == nil || v.Role != "" || !errors.Is(v.Refuse, cause) || v.Refuse.Origin != lkg.OriginInit ||
		v.Refuse.Outcome != lkg.CheckUndecodable {
		t.Errorf("got %+v", v)
	}
	if v.Condition.Status != lkg.StatusFalse || v.Condition.Reason != "local baseline (init) is undecodable" {
		t.Errorf("condition %+v", v.Condition)
	}
}

// TestIdentityOfABadConfig: R-CS-58. Key and digest, in whichever object. Another version of the same object is
// another config.
func TestIdentityOfABadConfig(t *testing.T) {
	other := named("x")
	other.Digest = "sha256:fixed"
	for _, c := range []struct {
		name  string
		entry lkg.Ref
		avoid bool
	}{
		{"same content", named("x"), true},
		{
			"same content, other resourceVersion",
			lkg.Ref{UID: "uid-x", Key: "kubelet", Digest: "sha256:x", ResourceVersion: "9"}, true,
		},
		{"other digest", other, false},
		{"other key", lkg.Ref{UID: "uid-x", Key: "other", Digest: "sha256:x"}, false},
		{"other UID, same content", lkg.Ref{UID: "uid-y", Key: "kubelet", Digest: "sha256:x"}, true},
		{"other UID, without a digest", lkg.Ref{UID: "uid-y"}, false},
		{"only the UID, as in the specification", lkg.Ref{UID: "uid-x"}, true},
	} {
		s := onTrial("x", "a", "b")
		s.Bad = []lkg.BadEntry{{Ref: c.entry, Reason: "listed"}}
		v := lkg.Decide(lkg.Input{State: s, Recorded: true}, (&world{}).check)
		if avoided := v.Role != lkg.RoleCurrent; avoided != c.avoid {
			t.Errorf("%s: avoided %v, want %v", c.name, avoided, c.avoid)
		}
		if c.avoid && (!strings.HasPrefix(v.Condition.Reason, "listed") ||
			v.Condition.Reason != v.Rejected.Reason || v.NewlyRejected) {
			t.Errorf("%s: %+v, want the reason of the entry (R-CS-59)", c.name, v.Condition)
		}
	}
}

// TestStartsWithoutEvidence: they belong by time or by place, and count as unknown.
func TestStartsWithoutEvidence(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2030, 1, 1, 0, minute, 0, 0, time.UTC) }
	bare := func(minute int) lkg.Start { return lkg.Start{At: at(minute), Cause: lkg.CauseUnknown} }
	own := func(minute, n int) lkg.Start {
		return lkg.Start{At: at(minute), Assignment: "1", N: n, Cause: lkg.CauseCrash}
	}
	for _, c := range []struct {
		name   string
		starts []lkg.Start
		want   int
	}{
		{"the first one is free", []lkg.Start{bare(11)}, 0},
		{"later ones count", []lkg.Start{bare(11), bare(12), bare(13)}, 2},
		{"older ones do not belong", []lkg.Start{bare(1), bare(10), bare(12)}, 0},
		{"behind a start of the assignment, by a clock that went back", []lkg.Start{own(11, 1), bare(2), own(3, 2)}, 2},
		{"cut off before the first start was on record", []lkg.Start{bare(11), own(12, 1), own(13, 2)}, 1},
		{"the first start is no longer in the list", []lkg.Start{own(13, 7), own(14, 8)}, 2},
		{
			"local starts with evidence never belong",
			[]lkg.Start{{At: at(30), N: 4, Cause: lkg.CauseCrash}, own(12, 1), own(13, 2)}, 1,
		},
	} {
		s := onTrial("x", "a", "b")
		s.Current.At, s.Starts = at(10), c.starts
		v := lkg.Decide(lkg.Input{State: s, Recorded: true, Limits: func(lkg.Ref) lkg.Limits {
			return lkg.Limits{CrashLoopThreshold: 10}
		}}, (&world{}).check)
		if v.Counted != c.want || !v.OnTrial {
			t.Errorf("%s: counted %d, want %d; %+v", c.name, v.Counted, c.want, v.Ignored)
		}
	}
}

// TestUnclearConditionOfALiveProcess: R-CS-33, R-CS-75.
func TestUnclearConditionOfALiveProcess(t *testing.T) {
	v := lkg.Decide(lkg.Input{State: onTrial("x", "a", "b"), Recorded: true}, (&world{}).check)
	got := v.Unclear("no answer")
	want := lkg.Condition{
		Status: lkg.StatusUnknown, Reason: "failed to sync, desired config unclear, cause: no answer",
		Message: "using current (UID: uid-x)",
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
