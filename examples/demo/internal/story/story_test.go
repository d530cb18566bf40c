// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/examples/demo/internal/nodeprocess"
)

var (
	numbers = Settings{HealthzPort: 20000, TakenPort: 20001, Trial: 4 * time.Second, CrashLoopThreshold: 2}
	began   = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
)

// uid is what the tests give the configs.
func uid(name string) string { return strings.Repeat(name[1:], 8) + "-0000-4000-8000-000000000000" }

// played returns the step that pushes a config, with the references that pushing gives.
func played(t *testing.T, kind Kind, name string) Step {
	t.Helper()
	steps := Steps(numbers, true)
	i := slices.IndexFunc(steps, func(s Step) bool { return s.Kind == kind && s.Config.Name == name })
	if i < 0 {
		t.Fatalf("no step %q %q", kind, name)
	}
	s := steps[i]
	for _, c := range []*Config{&s.Config, &s.Good} {
		if c.Name != "init" {
			c.Ref = Ref{Name: "kubelet-" + c.Name, UID: uid(c.Name), Digest: "sha256:abcdef0123456789"}
		}
	}
	return s
}

// run is a run of the node's process.
func run(c Config, events ...nodeprocess.Event) []nodeprocess.Entry {
	var all []nodeprocess.Entry
	for i, e := range events {
		all = append(all, nodeprocess.Entry{At: began.Add(time.Duration(i) * time.Second), PID: 1, Event: e, Config: c.Sum()})
	}
	return all
}

// scene is a step, and what is seen when all of it has happened.
type scene struct {
	step Step
	mark Mark
	seen Seen
}

// scenes are one of each kind.
func scenes(t *testing.T) map[Kind]scene {
	t.Helper()
	const started, serving, failed, stopped = nodeprocess.Started, nodeprocess.Serving, nodeprocess.Failed, nodeprocess.Stopped
	settle, adopt := played(t, Settle, "init"), played(t, Adopt, "v1")
	refuse, back := played(t, Refuse, "v3"), played(t, RollBack, "v4")
	v1 := run(adopt.Config, started, serving)
	ok := Report{Active: adopt.Config.Ref, Good: adopt.Config.Ref, Status: "True", Reason: "all checks passed"}
	bad := func(s Step, reason string) Report {
		return Report{
			Active: s.Good.Ref, Good: s.Good.Ref, Status: "False", Reason: reason, Message: "using last known good",
			Rejected: map[string]string{s.Config.Ref.UID: reason},
		}
	}
	return map[Kind]scene{
		Settle: {settle, Mark{At: began}, Seen{
			Node: "n", Runs: run(settle.Config, started, serving),
			Report: Report{Status: "True", Reason: "current is set to the local default, and an init config was provided"},
		}},
		Adopt: {adopt, Mark{At: began, Entries: 2}, Seen{
			Node: "n", Runs: slices.Concat(run(settle.Config, started, serving, stopped), v1), Report: ok,
		}},
		Refuse: {refuse, Mark{At: began, Entries: 2}, Seen{
			Node: "n", Runs: v1, Report: bad(refuse, "failed to validate current (UID: "+uid("v3")+")"),
		}},
		RollBack: {back, Mark{At: began, Entries: 2}, Seen{
			Node: "n", Report: bad(back, "failed to run current (UID: "+uid("v4")+"), crash loop: 3 unexplained restarts, tolerated: 2"),
			Runs: slices.Concat(v1, run(back.Config, started, failed), run(back.Config, started, failed), v1),
		}},
	}
}

func TestNothingIsMissingWhenAllHasHappened(t *testing.T) {
	for kind, s := range scenes(t) {
		if missing := s.step.Missing(s.mark, s.seen); len(missing) > 0 {
			t.Errorf("%s: got %q missing, want nothing", kind, missing)
		}
		if !s.step.Settled(s.mark, s.seen) {
			t.Errorf("%s: not settled", kind)
		}
	}
}

// TestEverythingThatIsWrongIsMissing breaks one thing after the other in what was seen. Each must be noticed, and named.
func TestEverythingThatIsWrongIsMissing(t *testing.T) {
	for _, c := range []struct {
		name, want string
		kinds      []Kind
		breakIt    func(*scene)
	}{
		{"nothing ran", "its process runs", all, func(s *scene) { s.seen.Runs = nil }},
		{"not serving", "its process runs", all, func(s *scene) { s.seen.Runs = s.seen.Runs[:len(s.seen.Runs)-1] }},
		{"another config runs", "its process runs", all, func(s *scene) {
			s.seen.Runs = append(s.seen.Runs, nodeprocess.Entry{Event: nodeprocess.Serving, Config: "other"})
		}},
		{"healthz", "healthz answers (refused)", all, func(s *scene) { s.seen.Healthz = errors.New("refused") }},
		{"no report", "it reports (gone)", all, func(s *scene) { s.seen.ReportErr = errors.New("gone") }},
		{"active", "as active", all, func(s *scene) { s.seen.Report.Active.UID = "other" }},
		{"last known good", "as last known good", all, func(s *scene) { s.seen.Report.Good.UID = "other" }},
		{"on trial", "the trial is over", all, func(s *scene) { s.seen.Report.Trial = &Trial{} }},
		{"condition", "ConfigOK is", all, func(s *scene) { s.seen.Report.Status = "Unknown" }},
		{"reason", "the reason begins with", all, func(s *scene) { s.seen.Report.Reason = "for no reason" }},
		{"never started with it", "was started with", []Kind{Settle, Adopt}, func(s *scene) { s.mark.Entries = len(s.seen.Runs) }},
		{"restarted", "was left alone (1 restarts)", []Kind{Refuse}, func(s *scene) { s.mark.Entries = 0 }},
		{"never crashed", "crashed with v4", []Kind{RollBack}, func(s *scene) { s.mark.Entries = len(s.seen.Runs) }},
		{"not listed", "lists", []Kind{Refuse, RollBack}, func(s *scene) { s.seen.Report.Rejected = nil }},
		{"another UID in the reason", "names the UID", []Kind{Refuse, RollBack}, func(s *scene) {
			s.seen.Report.Reason = strings.ReplaceAll(s.seen.Report.Reason, s.step.Config.Ref.UID, uid("v9"))
		}},
	} {
		for _, kind := range c.kinds {
			s := scenes(t)[kind]
			c.breakIt(&s)
			missing := s.step.Missing(s.mark, s.seen)
			if !slices.ContainsFunc(missing, func(m string) bool { return strings.Contains(m, c.want) }) {
				t.Errorf("%s, %s: got %q missing, want one with %q", kind, c.name, missing, c.want)
			}
		}
	}
}

var all = []Kind{Settle, Adopt, Refuse, RollBack}

func TestBackWithin(t *testing.T) {
	s := scenes(t)[RollBack]
	for _, c := range []struct {
		name     string
		from, to time.Duration
		ok       bool
	}{
		{"during the outage", 0, 2 * time.Second, true},
		{"before it", 90 * time.Second, 100 * time.Second, false},
		{"after it", -2 * time.Second, -time.Second, false},
	} {
		err := s.step.BackWithin(s.mark, s.seen, began.Add(c.from), began.Add(c.to))
		if (err == nil) != c.ok {
			t.Errorf("%s: got %v, want ok=%v", c.name, err, c.ok)
		}
	}
	s.mark.Entries = len(s.seen.Runs)
	if err := s.step.BackWithin(s.mark, s.seen, began, began.Add(time.Hour)); err == nil {
		t.Error("never back: got nil, want an error")
	}
}

func TestStepsArePushedInOrderAndEndOnAGoodConfig(t *testing.T) {
	for _, outage := range []bool{true, false} {
		steps := Steps(numbers, outage)
		var names []string
		sums := map[string]bool{}
		for i, s := range steps {
			names = append(names, s.Title())
			if i > 0 {
				sums[s.Config.Sum()] = true
			}
			if s.Outage != (outage && s.Kind == RollBack) {
				t.Errorf("outage=%v, %s: got Outage %v", outage, s.Title(), s.Outage)
			}
		}
		want := "init from disk, v1 good, v2 undecodable, v3 invalid, v4 crashing, v5 good"
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if len(sums) != 5 {
			t.Errorf("got %d different payloads, want 5: the journal tells configs apart by their content", len(sums))
		}
		if last := steps[len(steps)-1]; last.Kind != Adopt || last.Good.Name != last.Config.Name {
			t.Errorf("the last step is %s of %s: the fleet must end on a good config", last.Kind, last.Config.Name)
		}
	}
}
