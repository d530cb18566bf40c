// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/golden"
)

var start = time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)

func pod(name string) drain.PodRef {
	return drain.PodRef{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}
}

func planned() drain.Result {
	ref := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	return drain.Result{
		Nodes: []drain.NodePlan{
			{Node: "node-1", Counts: drain.Counts{Remaining: 4, Evictable: 1, Waiting: 1, Blocked: 2, Skipped: 2}, Pods: []drain.PodPlan{
				{PodRef: pod("web-1"), Action: drain.Evict, Budgets: []string{"web"}, Guarded: true, Step: drain.StepEvict},
				{
					PodRef: pod("web-2"), Action: drain.Wait, Reason: drain.BudgetExhausted, Budgets: []string{"web"},
					Message: "budget web allows none now:\n2 of 3 healthy, 2 needed",
				},
				{
					PodRef: pod("db-0"), Action: drain.Block, Reason: drain.BudgetNeverAllows, Budgets: []string{"db"}, Tier: 10,
					Message: "budget db needs 1 healthy of 1",
				},
				{
					PodRef: pod("cache-0"), Action: drain.Block, Reason: drain.LocalStorage, Tier: 10, Message: "volume tmp would be lost",
					Next: drain.StepDelete, NextAt: start.Add(10 * time.Minute),
				},
				{PodRef: pod("agent-x"), Action: drain.Skip, Reason: "DaemonSetPod"},
				{PodRef: pod("job-1"), Action: drain.Skip, Reason: "Terminal"},
			}},
			{Node: "node-2", Counts: drain.Counts{Remaining: 1, Evictable: 1}, Pods: []drain.PodPlan{
				{PodRef: pod("late-0"), Action: drain.Evict, Step: drain.StepDelete},
			}},
			{Node: "node-3"},
		},
		Budgets: []drain.BudgetPlan{
			{Budget: ref("default", "web"), Pods: 2, Allowed: 1, Rounds: 2}, {Budget: ref("default", "db"), Pods: 1, Never: true},
		},
		Rounds: 2,
	}
}

// R-DR-03: a pod that can't leave is named with its budget, and what could change it.
func TestPlanText(t *testing.T) {
	p := PlanOf(planned(), nil)
	golden.Check(t, "plan.txt", p.Text(start))
	if p.Blocked != 1 {
		t.Errorf("blocked: got %d, want 1: for the other one a step is announced", p.Blocked)
	}
	golden.Check(t, "plan-empty.txt", PlanOf(drain.Result{Nodes: []drain.NodePlan{{Node: "node-1"}}}, nil).Text(start))
	free := drain.Result{Rounds: 1, Nodes: []drain.NodePlan{{Node: "node-1", Counts: drain.Counts{Remaining: 1, Evictable: 1}, Pods: []drain.PodPlan{
		{PodRef: pod("web-1"), Action: drain.Evict, Step: drain.StepEvict},
	}}}}
	golden.Check(t, "plan-free.txt", PlanOf(free, nil).Text(start))
	found := []drain.Finding{{Node: "node-1", PodRef: pod("web-1"), Reason: "PodUnhealthy", Message: "is not ready"}}
	golden.Check(t, "plan-unhealthy.txt", PlanOf(free, found).Text(start))
	if PlanOf(free, nil).Stands() || !PlanOf(free, found).Stands() || !p.Stands() {
		t.Error("a drain stands exactly where a pod is blocked, or keeps it from beginning")
	}
}

func TestPlanJSON(t *testing.T) {
	out, err := PlanOf(planned(), nil).JSON()
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "plan.json", out)
	var back Plan
	if err := json.Unmarshal([]byte(out), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(PlanOf(planned(), nil), back); diff != "" {
		t.Errorf("the plan that was read again differs (-want +got):\n%s", diff)
	}
}

// story is a drain of two nodes, status by status.
func story() []drain.SetStatus {
	blocked := drain.Blocker{
		PodRef: pod("db-0"), Action: drain.Block, Reason: drain.BudgetNeverAllows, Budgets: []string{"db"}, Message: "budget db needs 1 healthy of 1",
		Since: start.Add(time.Second), Next: drain.StepDelete, NextAt: start.Add(10 * time.Minute),
	}
	var waiting []drain.Blocker
	for i := range 5 {
		waiting = append(waiting, drain.Blocker{
			PodRef: pod(fmt.Sprintf("web-%d", i)), Action: drain.Wait, Reason: drain.BudgetExhausted, Budgets: []string{"web"},
			Message: "budget web allows none now: 2 of 3 healthy, 2 needed", Since: start.Add(2 * time.Second),
		})
	}
	ending := drain.Blocker{PodRef: pod("app-0"), Action: drain.Wait, Reason: drain.Terminating}
	gone := []drain.PodRef{pod("app-0"), pod("web-0"), pod("web-1"), pod("web-2"), pod("web-3"), pod("web-4")}
	n2 := drain.Status{Node: "node-2", Phase: drain.Pending, Reason: "WaitingForSlot", Message: "1 of 1 nodes is draining"}
	n1 := func(phase drain.Phase, evicted int, blockers ...drain.Blocker) drain.Status {
		s := drain.Status{Node: "node-1", Phase: phase, Started: start, Blockers: blockers, Evicted: gone[:evicted]}
		s.Counts = drain.Counts{Remaining: len(blockers), Evicted: evicted}
		for _, b := range blockers {
			switch {
			case b.Action == drain.Block:
				s.Counts.Blocked++
			case b.Reason == drain.Terminating:
				s.Counts.Terminating++
			default:
				s.Counts.Waiting++
			}
		}
		return s
	}
	set := func(nodes ...drain.Status) drain.SetStatus { return drain.SetStatus{Nodes: nodes} }
	settling := n1(drain.Settling, 6)
	settling.Reason, settling.Message = "SettleWindow", "empty for 0s of 5s"
	settling.Attached = []drain.Attached{{Volume: "pv-7", Pods: []drain.PodRef{pod("app-0")}}}
	drained := n1(drain.Drained, 6)
	drained.Outcome, drained.Finished = drain.OutcomeForced, start.Add(11*time.Minute)
	drained.Evicted = append(drained.Evicted, pod("db-0"))
	drained.Forced, drained.Counts.Evicted = []drain.PodRef{pod("db-0")}, 7
	failed := drain.Status{Node: "node-2", Phase: drain.Failed, Outcome: drain.OutcomeFailed, Reason: drain.NodeNotFound, Message: "there is no such Node"}
	return []drain.SetStatus{
		set(n1(drain.Cordoned, 0), n2),
		set(n1(drain.Draining, 1, append(waiting, blocked, ending)...), n2),
		set(n1(drain.Draining, 1, append(waiting, blocked, ending)...), n2),
		set(n1(drain.Draining, 2, append(waiting[1:], blocked)...), n2),
		set(settling, n2),
		set(drained, failed),
	}
}

// R-DR-03: the pod that can't leave is told of once, in the first status that has it, with its budget and since when.
func TestLogHasOneLineForEachEdge(t *testing.T) {
	var l Log
	var got strings.Builder
	for i, s := range story() {
		fmt.Fprintf(&got, "status %d\n%s", i, text(l.Next(s, start.Add(time.Minute))))
	}
	golden.Check(t, "edges.txt", got.String())
}

// A pod whose reason flaps between two passes is told of when the reason is another one, not each time it is there.
func TestLogDoesNotRepeatItself(t *testing.T) {
	var l Log
	s := story()
	for range 3 {
		_ = l.Next(s[1], start)
		_ = l.Next(drain.SetStatus{Nodes: []drain.Status{{Node: "node-1", Phase: drain.Draining, Started: start}, s[1].Nodes[1]}}, start)
	}
	if got := l.Next(s[1], start); len(got) != 0 {
		t.Errorf("got %q for what was said already, want nothing", got)
	}
	other := slices.Clone(s[1].Nodes[0].Blockers)
	other[0].Reason, other[0].Message = drain.AdmissionDenied, "the webhook says no"
	s[1].Nodes[0].Blockers = other
	if got := text(l.Next(s[1], start)); got != "node-1: waiting default/web-0: AdmissionDenied (web): the webhook says no\n" {
		t.Errorf("got %q for a pod with another reason, want a line about it alone", got)
	}
	frozen := s[1]
	frozen.Reason, frozen.Message = drain.Frozen, "node-0 went bad"
	if got := l.Next(frozen, start); len(got) != 1 || got[0] != "Frozen: node-0 went bad" {
		t.Errorf("got %q for a set that stands still, want its reason alone", got)
	}
}

func TestLive(t *testing.T) {
	var got strings.Builder
	for i, s := range story() {
		fmt.Fprintf(&got, "status %d\n%s\n", i, text(Live(s, start.Add(time.Minute))))
	}
	golden.Check(t, "live.txt", got.String())
}

// However many nodes there are, those at work are seen.
func TestLiveShowsNodesAtWorkFirst(t *testing.T) {
	var s drain.SetStatus
	for i := range 100 {
		n := drain.Status{Node: fmt.Sprintf("node-%d", i), Phase: drain.Drained}
		if i >= 50 {
			n.Phase = drain.Pending
		}
		if i == 50 {
			n.Phase = drain.Draining
		}
		s.Nodes = append(s.Nodes, n)
	}
	lines := Live(s, start)
	if len(lines) != maxNodes+2 || !strings.HasPrefix(lines[1], "node-50 ") || lines[len(lines)-1] != "and 88 more nodes: 50 Drained, 38 Pending" {
		t.Errorf("got\n%s", text(lines))
	}
}

// R-DR-16, R-DR-17: at the end everybody is counted, and after an interruption those who had left are named.
func TestSummary(t *testing.T) {
	all := story()
	last := all[len(all)-1]
	golden.Check(t, "summary.txt", Summary{Status: last, Release: "drain release node-1 --holder=drain/jane"}.Text(start.Add(time.Hour)))
	blocked := all[3]
	blocked.Nodes[0].Outcome = drain.OutcomeBlocked
	golden.Check(t, "summary-blocked.txt", Summary{Status: blocked, Release: "drain release node-1 --holder=drain/jane"}.Text(start.Add(time.Hour)))
	released := all[1]
	released.Nodes[0].Phase, released.Nodes[0].Blockers, released.Nodes[1].Message = drain.Released, nil, ""
	released.Nodes[0].Reason = drain.Unmanaged // of the drain, which is over
	golden.Check(t, "summary-interrupted.txt", Summary{Status: released, Interrupted: true, Release: "x"}.Text(start.Add(time.Hour)))
	golden.Check(t, "summary-interrupted-early.txt", Summary{Status: drain.SetStatus{Nodes: last.Nodes[1:]}, Interrupted: true}.Text(start))
}

func TestHeldAreThoseThatCarryAMark(t *testing.T) {
	var s drain.SetStatus
	for _, p := range []drain.Phase{
		drain.Pending, drain.Cordoned, drain.Draining, drain.Paused, drain.Settling, drain.Drained, drain.Holding, drain.HoldEnded, drain.Soak,
		drain.Released, drain.Failed,
	} {
		s.Nodes = append(s.Nodes, drain.Status{Node: string(p), Phase: p})
	}
	want := "Cordoned Draining Paused Settling Drained Holding HoldEnded"
	if got := strings.Join(Held(s), " "); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNextSaysWhen(t *testing.T) {
	for _, c := range []struct {
		step drain.Step
		at   time.Time
		want string
	}{
		{"", start, ""},
		{drain.StepDelete, time.Time{}, "Delete"},
		{drain.StepDelete, start.Add(5 * time.Minute), "Delete at 14:05:00 (in 5m)"},
		{drain.StepDelete, start.Add(-time.Second), "Delete now"},
	} {
		if got := next(c.step, c.at, start); got != c.want {
			t.Errorf("next(%q, %s): got %q, want %q", c.step, c.at, got, c.want)
		}
	}
}
