// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
)

func running(soak lkg.Soak) lkg.State {
	s := onTrial("x", "a", "b")
	s.Soak = soak
	s.Starts[0].Used = lkg.Used{Role: lkg.RoleCurrent, UID: "uid-x", Key: "kubelet", Digest: "sha256:x"}
	return s
}

var (
	failing = []lkg.ProbeResult{{Name: "up", Required: true}, {Name: "ready", Required: true, Err: errors.New("no")}}
	below   = []lkg.ProbeResult{failing[1], {Name: "runtime", Below: true, Err: errors.New("away")}}
	unknown = []lkg.ProbeResult{{Name: "ready", Required: true, Unknown: true, Err: errors.New("no answer")}}
	wanted  = []lkg.ProbeResult{{Name: "disk", Err: errors.New("no")}}
)

// TestPromoteTable: R-CS-46, R-CS-63. The trial is ten minutes, the least run one minute, the deadline five.
// L-CS-34.
func TestPromoteTable(t *testing.T) {
	const m, s = time.Minute, time.Second
	for _, c := range []struct {
		name string
		soak lkg.Soak
		h    lkg.Health
		want lkg.Result
		acc  time.Duration
		run  time.Duration
	}{
		{"first report", lkg.Soak{}, lkg.Health{Elapsed: 10 * s}, lkg.ResultWait, 10 * s, 10 * s},
		{
			"equal is still on trial", lkg.Soak{Assignment: "1", Accumulated: 10*m - s, Run: 10*m - s, Last: "healthy"},
			lkg.Health{Elapsed: s}, lkg.ResultWait, 10 * m, 10 * m,
		},
		{
			"longer than the trial", lkg.Soak{Assignment: "1", Accumulated: 10 * m, Run: 10 * m, Last: "healthy"},
			lkg.Health{Elapsed: 1}, lkg.ResultPromoted, 10*m + 1, 10*m + 1,
		},
		{
			"the run is too short", lkg.Soak{Assignment: "1", Accumulated: 20 * m}, lkg.Health{Elapsed: 59 * s}, lkg.ResultWait,
			20*m + 59*s, 59 * s,
		},
		{
			"the run is just long enough", lkg.Soak{Assignment: "1", Accumulated: 20 * m, Run: 59 * s, Last: "healthy"},
			lkg.Health{Elapsed: s}, lkg.ResultPromoted, 20*m + s, m,
		},
		{
			"a required probe fails in this report",
			lkg.Soak{Assignment: "1", Accumulated: 20 * m, Run: 20 * m, Last: "healthy"},
			lkg.Health{Elapsed: s, Probes: failing}, lkg.ResultWait, 20 * m, 0,
		},
		{
			"a wanted probe does not matter", lkg.Soak{Assignment: "1", Accumulated: 20 * m, Run: 20 * m, Last: "healthy"},
			lkg.Health{Elapsed: s, Probes: wanted}, lkg.ResultPromoted, 20*m + s, 20*m + s,
		},
		{
			"the time since a failing report is not healthy", lkg.Soak{Assignment: "1", Accumulated: m, Last: "failing"},
			lkg.Health{Elapsed: 30 * s}, lkg.ResultWait, m, 0,
		},
		{
			"time of another assignment", lkg.Soak{Assignment: "0", Accumulated: 20 * m, Run: 20 * m, Last: "healthy"},
			lkg.Health{Elapsed: s}, lkg.ResultWait, s, s,
		},
		{
			"a suspended machine", lkg.Soak{Assignment: "1", Last: "healthy"}, lkg.Health{Elapsed: 24 * time.Hour},
			lkg.ResultWait, lkg.MaxElapsed, lkg.MaxElapsed,
		},
		{
			"time that runs backwards", lkg.Soak{Assignment: "1", Accumulated: m, Run: m, Last: "healthy"},
			lkg.Health{Elapsed: math.MinInt64}, lkg.ResultWait, m, m,
		},
		{
			"failing up to the deadline", lkg.Soak{Assignment: "1", Failing: 5*m - s, Last: "failing"},
			lkg.Health{Elapsed: s, Probes: failing}, lkg.ResultWait, 0, 0,
		},
		{
			"failing past the deadline", lkg.Soak{Assignment: "1", Failing: 5 * m, Last: "failing"},
			lkg.Health{Elapsed: 1, Probes: failing}, lkg.ResultRestart, 0, 0,
		},
		{
			"a witness below fails, too", lkg.Soak{Assignment: "1", Failing: 5 * m, Last: "failing"},
			lkg.Health{Elapsed: m, Probes: below}, lkg.ResultWait, 0, 0,
		},
		{
			"no answer breaks nothing", lkg.Soak{Assignment: "1", Accumulated: m, Run: m, Last: "healthy"},
			lkg.Health{Elapsed: m, Probes: unknown}, lkg.ResultWait, m, m,
		},
		{
			"no answer for longer than a report may count breaks the run",
			lkg.Soak{Assignment: "1", Accumulated: 20 * m, Run: m, Unknown: 30 * s, Last: "unknown"},
			lkg.Health{Elapsed: 31 * s, Probes: unknown}, lkg.ResultWait, 20 * m, 0,
		},
		{
			"no answer for as long as a report may count breaks nothing",
			lkg.Soak{Assignment: "1", Accumulated: 20 * m, Run: m, Unknown: 30 * s, Last: "unknown"},
			lkg.Health{Elapsed: 30 * s, Probes: unknown}, lkg.ResultWait, 20 * m, m,
		},
		{
			"failing, and then not", lkg.Soak{Assignment: "1", Failing: 5 * m, Last: "failing"}, lkg.Health{Elapsed: m},
			lkg.ResultWait, 0, 0,
		},
	} {
		p := lkg.Promote(running(c.soak), lkg.Limits{MinHealthyRun: time.Minute}, c.h)
		if p.Result != c.want || p.Soak.Accumulated != c.acc || p.Soak.Run != c.run {
			t.Errorf("%s: %q, accumulated %v, run %v (%s); want %q, %v, %v",
				c.name, p.Result, p.Soak.Accumulated, p.Soak.Run, p.Why, c.want, c.acc, c.run)
		}
		if p.Why == "" || p.Rejected != nil || (p.Case != nil) != (c.want == lkg.ResultRestart) {
			t.Errorf("%s: why %q, rejected %+v, case %+v; want a suspicion, and no rejection", c.name, p.Why, p.Rejected, p.Case)
		}
	}
}

// TestPromoteOnlyWhatRuns: a fallback, an older assignment, the local config and the last known good one earn nothing.
func TestPromoteOnlyWhatRuns(t *testing.T) {
	long := lkg.Soak{Assignment: "1", Accumulated: time.Hour, Run: time.Hour, Last: "healthy"}
	change := func(f func(*lkg.State)) lkg.State {
		s := running(long)
		f(&s)
		return s
	}
	for name, s := range map[string]lkg.State{
		"no start":               change(func(s *lkg.State) { s.Starts = nil }),
		"start of an older one":  change(func(s *lkg.State) { s.Current.ID = "2" }),
		"a fallback runs":        change(func(s *lkg.State) { s.Starts[0].Used.Role = lkg.RoleLastKnownGood }),
		"other content runs":     change(func(s *lkg.State) { s.Starts[0].Used.Digest = "sha256:other" }),
		"decision not on record": change(func(s *lkg.State) { s.Starts[0].Used = lkg.Used{} }),
		"the local config runs": change(func(s *lkg.State) {
			s.Current = lkg.Assignment{}
			s.Starts[0] = lkg.Start{N: 1, Used: lkg.Used{Role: lkg.RoleCurrent}}
		}),
		"it is known good":        change(func(s *lkg.State) { s.LastKnownGood = named("x") }),
		"nothing was ever stored": {},
	} {
		p := lkg.Promote(s, lkg.Limits{}, lkg.Health{Elapsed: time.Minute})
		if p.Result != lkg.ResultIdle || p.Soak.Accumulated > s.Soak.Accumulated {
			t.Errorf("%s: %q (%s)", name, p.Result, p.Why)
		}
	}
	listed := change(func(s *lkg.State) { s.Bad = bad("x") })
	if p := lkg.Promote(listed, lkg.Limits{}, lkg.Health{Elapsed: time.Minute}); p.Result != lkg.ResultRejected ||
		p.Rejected == nil {
		t.Errorf("listed while it runs: %q (%s), want a rejection so that the caller restarts", p.Result, p.Why)
	}
}
