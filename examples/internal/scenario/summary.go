// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"time"

	"github.com/belayproject/belay/examples/internal/screen"
)

// A Result is what an act has led to.
type Result struct {
	Act  Act
	Seen Seen
	Took time.Duration
	// Updated is how many attempts were made on nodes, Controller and Agents how many requests these have sent to the API server meanwhile.
	Updated            int64
	Controller, Agents int64
	// Missing is what was not seen.
	Missing []string
}

// OK reports whether everything that was expected was seen.
func (r Result) OK() bool { return len(r.Missing) == 0 }

// Sentence says what happened.
func (r Result) Sentence() string {
	switch {
	case !r.OK():
		return "Not everything that was expected was seen:"
	case r.Act.Kind == Stop:
		return fmt.Sprintf("It stopped by itself after %s, at %s: %d nodes were broken, where %d could have been, and run %s again. The controller says: %s",
			short(r.Took), r.Seen.Status.Done, r.Seen.Crashed, r.Seen.Bound, r.Act.Good, r.Seen.Status.Message)
	}
	return fmt.Sprintf("All %d nodes run %s after %s. At most %d were away at a time, of %d that may be.",
		r.Seen.Nodes, r.Act.Name, short(r.Took), r.Seen.Most, r.Seen.Cap)
}

// Summary is the table of all acts.
func Summary(results []Result) (screen.Layout, []screen.Row) {
	layout := screen.Layout{Columns: []screen.Column{
		{Heading: "ROLLOUT"}, {Heading: "OUTCOME"}, {Heading: "DONE"}, {Heading: "TOOK"}, {Heading: "AWAY (CAP)"}, {Heading: "BROKEN (BOUND)"},
		{Heading: "UPDATES"}, {Heading: "CALLS EACH"},
	}}
	var rows []screen.Row
	for _, r := range results {
		outcome := screen.Cell{Text: string(r.Act.Kind), Tone: screen.Good}
		if !r.OK() {
			outcome = screen.Cell{Text: "NOT " + string(r.Act.Kind), Tone: screen.Bad}
		}
		done := "-"
		if r.Seen.Status != nil {
			done = r.Seen.Status.Done
		}
		rows = append(rows, screen.Row{Cells: []screen.Cell{
			{Text: r.Act.Title(), Tone: screen.Strong}, outcome, {Text: done}, {Text: short(r.Took)},
			{Text: fmt.Sprintf("%d (%d)", r.Seen.Most, r.Seen.Cap)}, {Text: fmt.Sprintf("%d (%d)", r.Seen.Crashed, r.Seen.Bound)},
			{Text: fmt.Sprint(r.Updated)}, {Text: r.each()},
		}})
	}
	return layout, rows
}

// each is how many requests one update took: those of the controller, and those of agents.
func (r Result) each() string {
	if r.Updated == 0 {
		return "-"
	}
	n := float64(r.Updated)
	return fmt.Sprintf("%.1f + %.1f", float64(r.Controller)/n, float64(r.Agents)/n)
}

// short is a duration for people.
func short(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
