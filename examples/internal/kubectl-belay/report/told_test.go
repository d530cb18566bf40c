// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/report"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// fresh is [seen] before anything has begun, with all nodes ready, and room for three at a time.
func fresh(t *testing.T) *view.Seen {
	t.Helper()
	s := seen(t)
	s.Nodes[9].Status.Conditions[0].Status = corev1.ConditionTrue
	s.Ledgers[0].Spec.Slots = nil
	for i := range s.Shadows {
		s.Shadows[i] = shadow(11)
		s.Shadows[i].Name, s.Shadows[i].Spec.NodeUID = s.Nodes[i].Name, string(s.Nodes[i].UID)
	}
	s.Rollouts[0].Status = v1alpha1.RolloutStatus{}
	s.Rollouts[0].Spec.Caps[0].Max = intstr.FromInt32(3)
	return s
}

func planOf(t *testing.T, s *view.Seen) report.Plan {
	t.Helper()
	v, err := s.Decide(&s.Rollouts[0])
	if err != nil {
		t.Fatal(err)
	}
	sim, err := v.Simulate(now(), rollout.Assumptions{Cycle: 10 * time.Minute, WorstCycle: 20 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return report.PlanOf(v, sim, now())
}

// atOnce is how many nodes are under way at a time at most.
func atOnce(p report.Plan) (most int) {
	for _, at := range p.Order {
		n := 0
		for _, t := range p.Order {
			if !t.Begin.After(at.Begin.Time) && (t.End == nil || t.End.After(at.Begin.Time)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// A plan is that of a controller that was told the same: its own node is no canary, and the cap of the domain binds a rollout that allows more.
func TestPlanHeedsWhatTheControllerWasTold(t *testing.T) {
	s := fresh(t)
	if p := planOf(t, s); p.Order[0].Node != "node-00" || p.Order[1].Node != "node-02" || atOnce(p) != 3 {
		t.Fatalf("of a controller that was told nothing %d are under way at a time, want 3, and node-00 and node-02 first: %+v", atOnce(p), p.Order)
	}
	s.OwnNode, s.Caps = "node-00", []protocol.Cap{{Max: 1}}
	p := planOf(t, s)
	if last := p.Order[len(p.Order)-1].Node; p.Order[0].Node != "node-02" || last != "node-00" {
		t.Errorf("the first is %s and the last %s, want node-02 and node-00, on which the controller runs", p.Order[0].Node, last)
	}
	if n := atOnce(p); n != 1 {
		t.Errorf("%d nodes are under way at a time, want 1, which is the cap of the domain", n)
	}
}

// Whoever has switched the controller off is named for every node, and in the plan.
func TestSwitchedOffShows(t *testing.T) {
	s := fresh(t)
	s.Gates = []rollout.Verdict{view.Disabled("the audit is on")}
	for _, n := range s.Nodes {
		w := report.WhyOf(s, n.Name, s.Rollouts)
		if in := w.Rollouts[0]; in.Reason != string("Gate") || !strings.Contains(in.Detail, "the audit is on") {
			t.Errorf("node %s waits for %s: %s; want the switch", n.Name, in.Reason, in.Detail)
		}
	}
	if p := planOf(t, s); len(p.Order) > 0 || !p.Stands() || len(p.Left) == 0 || !strings.Contains(p.Left[0].Message, "the audit is on") {
		t.Errorf("the plan goes on, or does not say why not:\n%s", p.Text(false))
	}
}

// A rollout that can't be followed and has slots leaves no room for others, as for the controller.
func TestOthersWithSlotsAreWaitedFor(t *testing.T) {
	s := overlapping(t)
	s.Rollouts[0].Spec.Revision.Name = "v9"
	v, err := s.Decide(&s.Rollouts[1])
	if err != nil {
		t.Fatal(err)
	}
	if caps := v.Snapshot.OtherCaps; len(caps) != 1 || caps[0].Max != 1 || !strings.Contains(caps[0].From, `rollout "fleet"`) {
		t.Errorf("the caps of others are %+v, want one of 1 for rollout fleet", caps)
	}
}
