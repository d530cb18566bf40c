// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/examples/demo/internal/nodeprocess"
	"github.com/belayproject/belay/examples/internal/screen"
	"github.com/belayproject/belay/internal/golden"
)

// nodes are rows of every kind that there is.
func nodes(t *testing.T) []screen.Row {
	t.Helper()
	sc := scenes(t)
	v1, v4 := sc[Adopt].step.Config, sc[RollBack].step.Config
	known := []Config{Init(numbers), v1, v4}
	trial, crashing, silent, unclear := sc[Adopt], sc[RollBack], sc[Settle], sc[Settle]
	trial.seen.Report.Good, trial.seen.Report.Trial = Ref{}, &Trial{Healthy: 2 * time.Second, Needed: 4 * time.Second}
	crashing.seen.Report = Report{
		Active: v4.Ref, Good: v1.Ref, Status: "True", Reason: "all checks passed", Message: "using current (UID: " + uid("v4") + ")",
		Trial: &Trial{Needed: 4 * time.Second, Crashes: 1, Allowed: 2},
	}
	crashing.seen.Runs = append(run(v1, nodeprocess.Started, nodeprocess.Serving), run(v4, nodeprocess.Started, nodeprocess.Failed)...)
	crashing.seen.Healthz = errors.New("connection refused")
	silent.seen = Seen{ReportErr: errors.New("the node has not reported yet"), Healthz: errors.New("connection refused")}
	unclear.seen.Report.Status, unclear.seen.Report.Reason = "Unknown", "failed to sync, desired config unclear, cause: source is unreachable"
	var rows []screen.Row
	for i, s := range []scene{silent, sc[Settle], trial, sc[Adopt], sc[Refuse], crashing, sc[RollBack], unclear} {
		s.seen.Node = fmt.Sprintf("belay-demo-%d", i+1)
		rows = append(rows, s.step.Row(known, s.mark, s.seen))
	}
	return rows
}

func TestRowsGolden(t *testing.T) {
	rows := nodes(t)
	for _, width := range []int{79, 119} {
		lines := screen.Table(Layout(), rows, width, screen.Palette{})
		golden.Check(t, fmt.Sprintf("nodes-%d.golden", width+1), strings.Join(lines, "\n")+"\n")
	}
}

func results(t *testing.T) []Result {
	t.Helper()
	sc := scenes(t)
	var all []Result
	details := []string{"", "the kubelet refuses it", "config sha256:" + strings.Repeat("a1", 32) + " is refused"}
	for i, kind := range []Kind{Settle, Adopt, Refuse, RollBack} {
		s := sc[kind]
		r := Result{Step: s.step}
		for n := range 3 {
			after := time.Duration(i)*time.Second + time.Duration(n)*300*time.Millisecond
			o := s.step.Outcome(s.mark, s.seen, nil, after)
			o.Node = fmt.Sprintf("belay-demo-%d", n+1)
			r.Outcomes = append(r.Outcomes, o)
			if kind == Refuse {
				r.AddDetail(Detail{o.Node, details[n]})
				r.AddDetail(Detail{"another", details[n]})
			}
		}
		all = append(all, r)
	}
	all[3].Down = 4500 * time.Millisecond
	all[3].Outcomes[1].Restarts++
	return all
}

func TestSummaryGolden(t *testing.T) {
	good, bad := results(t), results(t)
	bad[2].Outcomes[0].Missing, bad[2].Outcomes[0].Status = []string{"it lists v3 as rejected"}, "Unknown"
	bad[3].Missing = []string{"the rollback without the API server was not seen"}
	var out strings.Builder
	for _, rs := range [][]Result{good, bad} {
		for _, width := range []int{79, 119} {
			layout, rows := Summary(rs)
			fmt.Fprintln(&out, strings.Join(screen.Table(layout, rows, width, screen.Palette{}), "\n"))
		}
		for _, r := range rs {
			fmt.Fprintf(&out, "ok=%v %s\n", r.OK(), r.Sentence())
			for _, d := range r.DescribeRefusals() {
				fmt.Fprintln(&out, d)
			}
			for _, u := range r.Unseen() {
				fmt.Fprintln(&out, "-", u)
			}
		}
	}
	golden.Check(t, "summary.golden", out.String())
}

func TestHealthIsExplainedByTheJournal(t *testing.T) {
	refused := errors.New("connection refused")
	for _, c := range []struct {
		event   nodeprocess.Event
		healthz error
		want    string
	}{
		{nodeprocess.Serving, nil, "ok"},
		{nodeprocess.Started, nil, "ok"},
		{nodeprocess.Started, refused, "starting"},
		{nodeprocess.Stopped, refused, "stopped"},
		{nodeprocess.Failed, refused, "crashed"},
		{nodeprocess.Serving, refused, "down"},
		{"", refused, "-"},
	} {
		got := healthCell(Seen{Healthz: c.healthz, Runs: []nodeprocess.Entry{{Event: c.event}}})
		if got.Text != c.want {
			t.Errorf("%q, healthz %v: got %q, want %q", c.event, c.healthz, got.Text, c.want)
		}
	}
}

func TestSentenceOfAConfigThatRanBefore(t *testing.T) {
	s := scenes(t)[Settle]
	s.mark = Mark{At: began.Add(time.Hour), Entries: len(s.seen.Runs)}
	r := Result{Step: s.step, Outcomes: []Outcome{s.step.Outcome(s.mark, s.seen, nil, time.Second)}}
	if got, want := r.Sentence(), "Seen on 1 node: settled after 1.0s. init ran already (restarts: 0)."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNoNodesIsNoSuccess(t *testing.T) {
	if (Result{}).OK() {
		t.Error("a step that was seen on no node: got OK, want not")
	}
}
