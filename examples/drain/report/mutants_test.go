// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch a report that is broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a blocked pod is told of at each status", File: "edges.go", Run: "TestLog", Old: "l.held[b.UID] = b.Reason\n", New: "\n"},
		{Name: "a change of the reason is not told of", File: "edges.go", Run: "TestLog", Old: "|| l.held[b.UID] == b.Reason", New: `|| l.held[b.UID] != ""`},
		{Name: "what is announced counts as blocked", File: "plan.go", Run: "TestPlan", Old: `a == drain.Block && next == ""`, New: `a == drain.Block`},
		{Name: "a node that keeps its mark isn't held", File: "summary.go", Run: "TestHeld", Old: "drain.Paused, ", New: ""},
		{Name: "nodes at work are not shown", File: "live.go", Run: "TestLiveShows", Old: "return nodes[:maxNodes], rest", New: "return nodes[len(nodes)-maxNodes:], rest"},
		{Name: "who had left is not named", File: "summary.go", Run: "TestSummary", Old: "for _, p := range n.Evicted {", New: "for _, p := range n.Forced {"},
		{Name: "a flag that doesn't help is named", File: "advice.go", Run: "TestFlagsThat", Old: `&& hook != ""`, New: `|| hook != ""`},
		{Name: "pods of two responders are one line", File: "edges.go", Run: "TestPodsOfDifferent", Old: "b.Budgets, b.Hook, ", New: "b.Budgets, "},
		{Name: "a stuck drain is not called so", File: "live.go", Run: "TestStuck", Old: "return blocked && !s.Done", New: "return blocked && s.Done"},
	})
}

// Waiting alone helps while a node can go on, or when nothing is waited for any more.
func TestStuckMeansThatWaitingAloneDoesNotHelp(t *testing.T) {
	blocked := drain.Status{Phase: drain.Draining, Outcome: drain.OutcomeBlocked}
	for _, c := range []struct {
		set  drain.SetStatus
		want bool
	}{
		{drain.SetStatus{Nodes: []drain.Status{blocked, {Phase: drain.Pending}, {Phase: drain.Drained}, {Phase: drain.Failed}}}, true},
		{drain.SetStatus{Nodes: []drain.Status{blocked, {Phase: drain.Draining}}}, false},
		{drain.SetStatus{Nodes: []drain.Status{blocked, {Phase: drain.Settling}}}, false},
		{drain.SetStatus{Nodes: []drain.Status{{Phase: drain.Pending}}}, false},
		{drain.SetStatus{Nodes: []drain.Status{blocked}, Done: true}, false},
	} {
		if got := Stuck(c.set); got != c.want {
			t.Errorf("Stuck(%+v): got %v, want %v", c.set, got, c.want)
		}
	}
}
