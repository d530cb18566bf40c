// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/drain"
)

// R-DR-15, R-DR-03: what a flag of the command would change is said beside the reason, in the plan, in the progress and at the end; where no
// flag helps, none is named.
func TestFlagsThatWouldHelpAreNamed(t *testing.T) {
	for _, c := range []struct {
		reason     drain.Reason
		hook, want string
	}{
		{drain.Unmanaged, "", "--force evicts it"},
		{drain.LocalStorage, "", "--delete-emptydir-data evicts it"},
		{drain.InvalidBehavior, "migrate", "--responder=migrate asks the pod to evacuate itself"},
		{drain.InvalidBehavior, "", ""},
		{"WaitingForHook", "migrate", ""},
		{drain.BudgetNeverAllows, "", ""},
	} {
		want := "why"
		if c.want != "" {
			want = "why; " + c.want
		}
		vm := drain.Blocker{PodRef: pod("vm"), Action: drain.Block, Reason: c.reason, Message: "why", Hook: c.hook}
		plan := PlanOf(drain.Result{Nodes: []drain.NodePlan{{Node: "node-1", Pods: []drain.PodPlan{
			{PodRef: vm.PodRef, Action: vm.Action, Reason: vm.Reason, Message: vm.Message, Hook: vm.Hook},
		}}}}, nil)
		set := drain.SetStatus{Nodes: []drain.Status{{Node: "node-1", Phase: drain.Draining, Counts: drain.Counts{Remaining: 1}, Blockers: []drain.Blocker{vm}}}}
		var log Log
		for where, text := range map[string]string{
			"plan": plan.Text(start), "progress": strings.Join(log.Next(set, start), "\n") + "\n", "end": Summary{Status: set}.Text(start),
		} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("%s and %q in the %s: got\n%s\nwant %q at the end of a line", c.reason, c.hook, where, text, want)
			}
		}
	}
}

// Two pods with one reason are two lines where they wait for different responders.
func TestPodsOfDifferentRespondersAreNotOne(t *testing.T) {
	var log Log
	blocked := func(name, hook string) drain.Blocker {
		return drain.Blocker{PodRef: pod(name), Action: drain.Block, Reason: drain.InvalidBehavior, Message: "no " + hook, Hook: hook}
	}
	lines := log.Next(drain.SetStatus{Nodes: []drain.Status{{Node: "n", Phase: drain.Draining, Counts: drain.Counts{Remaining: 3}, Blockers: []drain.Blocker{
		blocked("a", "x"), blocked("b", "y"), blocked("c", "x"),
	}}}}, time.Time{})
	if got := strings.Join(lines, "\n"); !strings.Contains(got, "--responder=x") || !strings.Contains(got, "--responder=y") || len(lines) != 3 {
		t.Errorf("got\n%s\nwant a line for each responder", got)
	}
}
