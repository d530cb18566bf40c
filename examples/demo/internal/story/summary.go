// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/examples/demo/internal/nodeprocess"
	"github.com/belayproject/belay/examples/internal/screen"
)

// An Outcome is what one step led to on one node.
type Outcome struct {
	Node string
	// Running is how long after the push the process ran what it must, by its journal; 0 if it had never left it, or never did.
	Running time.Duration
	// After is how long after the push the last missing thing was seen; 0 if it never was.
	After time.Duration
	// Restarts of the node's process during the step.
	Restarts int
	// Status and Reason of ConfigOK as they were at the end.
	Status, Reason string
	// Missing is what was never seen.
	Missing []string
}

// Outcome sums a node up at the end of a step.
func (s Step) Outcome(m Mark, seen Seen, missing []string, after time.Duration) Outcome {
	return Outcome{
		Node: seen.Node, Running: s.running(m, seen), After: after, Restarts: seen.restarts(m),
		Status: seen.Report.Status, Reason: seen.Report.Reason, Missing: missing,
	}
}

// running is the time from m until the node's process last began to serve with the good config; 0 if it did before m.
func (s Step) running(m Mark, seen Seen) time.Duration {
	for _, e := range slices.Backward(seen.since(m.Entries)) {
		if e.Event == nodeprocess.Serving && e.Config == s.Good.Sum() {
			return max(e.At.Sub(m.At), 0)
		}
	}
	return 0
}

// A Result is what one step led to on the fleet.
type Result struct {
	Step     Step
	Outcomes []Outcome
	// Down is how long the API server was stopped meanwhile; 0 if it wasn't.
	Down time.Duration
	// Missing is what belongs to no single node and was not seen.
	Missing []string
	// Details are the different details of a refusal, each with the first node whose agent gives it.
	Details []Detail
}

// A Detail is what the agent of a node knows about a refusal.
type Detail struct{ Node, Text string }

// AddDetail keeps a detail unless another node has given it before.
func (r *Result) AddDetail(d Detail) {
	if d.Text != "" && !slices.ContainsFunc(r.Details, func(o Detail) bool { return o.Text == d.Text }) {
		r.Details = append(r.Details, d)
	}
}

// OK reports whether everything that was expected was seen on every node.
func (r Result) OK() bool {
	return len(r.Missing) == 0 && len(r.Outcomes) > 0 &&
		!slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return len(o.Missing) > 0 })
}

// Sentence says what happened.
func (r Result) Sentence() string {
	if !r.OK() {
		return "Not everything that was expected was seen:"
	}
	text := fmt.Sprintf("Seen on %s: %s after %s.", count(len(r.Outcomes), "node"), r.Step.Kind, afters(r.Outcomes))
	if r.Step.Kind == Refuse {
		return text + " No process was restarted."
	}
	ran := "after " + runnings(r.Outcomes)
	if ran == "after "+never {
		ran = "already"
	}
	text += fmt.Sprintf(" %s ran %s (restarts: %s).", r.Step.Good.Name, ran, starts(r.Outcomes))
	if r.Down > 0 {
		text += fmt.Sprintf(" All nodes went back while the API server was down, for %s.", seconds(r.Down.Round(100*time.Millisecond)))
	}
	return text
}

// DescribeRefusals says what the agents know about a refusal, one sentence each.
func (r Result) DescribeRefusals() []string {
	var all []string
	for _, d := range r.Details {
		all = append(all, "The agent of "+d.Node+" says: "+shortDigests(shortUIDs(d.Text)))
	}
	return all
}

// Unseen lists what was expected and not seen, one line each.
func (r Result) Unseen() []string {
	lines := slices.Clone(r.Missing)
	for _, o := range r.Outcomes {
		for _, m := range o.Missing {
			lines = append(lines, o.Node+": not seen that "+m)
		}
	}
	return lines
}

// Summary is the table of all steps.
func Summary(results []Result) (screen.Layout, []screen.Row) {
	layout := screen.Layout{
		Columns: []screen.Column{
			{Heading: "CONFIG", Width: 14}, {Heading: "OUTCOME", Width: 20}, {Heading: "NODES"},
			{Heading: "RAN AFTER"}, {Heading: "DONE AFTER"}, {Heading: "RESTARTS"},
		},
		Why: "CONFIGOK SAID", Lines: 3,
	}
	var rows []screen.Row
	for _, r := range results {
		good := 0
		for _, o := range r.Outcomes {
			if len(o.Missing) == 0 {
				good++
			}
		}
		outcome := screen.Cell{Text: string(r.Step.Kind), Tone: screen.Good}
		if !r.OK() {
			outcome = screen.Cell{Text: "NOT " + string(r.Step.Kind), Tone: screen.Bad}
		}
		rows = append(rows, screen.Row{
			Cells: []screen.Cell{
				{Text: r.Step.Title(), Tone: screen.Strong}, outcome, {Text: fmt.Sprintf("%d/%d", good, len(r.Outcomes))},
				{Text: runnings(r.Outcomes)}, {Text: afters(r.Outcomes)}, {Text: starts(r.Outcomes)},
			},
			Why: screen.Cell{Text: said(r.Outcomes), Tone: screen.Faint},
		})
	}
	return layout, rows
}

// A figure is one number of an outcome.
type figure func(Outcome) float64

// running and after are in seconds.
func running(o Outcome) float64 { return o.Running.Seconds() }

func after(o Outcome) float64 { return o.After.Seconds() }

func restarts(o Outcome) float64 { return float64(o.Restarts) }

// span shows the least and the most of a figure over all nodes, or the one value that all have.
func span(outcomes []Outcome, f figure, format, unit string) string {
	if len(outcomes) == 0 {
		return "-"
	}
	low, high := f(outcomes[0]), f(outcomes[0])
	for _, o := range outcomes {
		low, high = min(low, f(o)), max(high, f(o))
	}
	first, last := fmt.Sprintf(format, low), fmt.Sprintf(format, high)
	if first == last {
		return last + unit
	}
	return first + "-" + last + unit
}

// never stands for a time at which nothing had to begin to run.
const never = "-"

// runnings, afters and starts are the spans that are shown.
func runnings(outcomes []Outcome) string {
	if !slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Running > 0 }) {
		return never // what ran was left alone
	}
	return span(outcomes, running, "%.1f", "s")
}

func afters(outcomes []Outcome) string { return span(outcomes, after, "%.1f", "s") }

func starts(outcomes []Outcome) string { return span(outcomes, restarts, "%.0f", "") }

// said lists the different things that ConfigOK said.
func said(outcomes []Outcome) string {
	var all []string
	for _, o := range outcomes {
		all = append(all, o.Status+": "+shortUIDs(o.Reason))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " / ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
