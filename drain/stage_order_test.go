// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// stageTier is a rule that puts an app into a tier.
func stageTier(app string, tier int32) drain.Rule {
	return drain.Rule{Name: app, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Tier: tier}
}

// R-DR-13: order is data: the same pods leave in another order under other rules, and a tier starts when the one before has left.
func TestOtherRulesOtherOrder(t *testing.T) {
	for want, rules := range map[string][]drain.Rule{
		"web api db": {stageTier("web", -1), stageTier("db", 7)},
		"db api web": {stageTier("web", 2), stageTier("api", 1)},
		"api web db": {stageTier("web", 5), stageTier("db", 6)},
	} {
		stage(t, draintest.Options{Termination: 10 * time.Second}, nil, func(s *stageTest) {
			for _, app := range []string{"web", "api", "db"} {
				s.web(app, 2, "n1")
			}
			r := s.request("n1", func(r *drain.Request) { r.Policy.Rules = rules })
			began := time.Now()
			s.phase(r, 10*time.Minute, drain.Drained)
			var order []string
			for _, c := range s.evictions() {
				app, _, _ := strings.Cut(strings.TrimPrefix(c.Object, "default/"), "-")
				if !slices.Contains(order, app) {
					order = append(order, app)
				}
				tier := time.Duration(slices.Index(order, app)) * 10 * time.Second
				if at := c.Started.Sub(began); at < tier || at > tier+time.Second {
					t.Errorf("%s: got it evicted after %s, want %s", c.Object, at, tier)
				}
			}
			if got := strings.Join(order, " "); got != want {
				t.Errorf("order: got %q, want %q", got, want)
			}
		})
	}
}

// R-DR-13: a blocked pod holds up later tiers and not its peers, and those no longer than the tier's deadline.
func TestTierDeadlineLetsTheNextTierGo(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.stuck()
		s.web("db", 1, "n1")
		began := time.Now()
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.Rules, r.Policy.TierDeadline = []drain.Rule{stageTier("db", 7)}, 15*time.Minute
		})
		st := s.pass(r)
		if len(s.accepted()) != 2 || st.Outcome != "" {
			t.Errorf("first pass: got %d evictions, outcome %q, want the 2 peers of the blocked pod and none yet", len(s.accepted()), st.Outcome)
		}
		s.until(r, time.Hour, "the next tier", func(drain.Status) bool { return len(s.accepted()) == 3 })
		if took := time.Since(began); took != 15*time.Minute {
			t.Errorf("next tier: got it after %s, want 15m0s", took)
		}
	})
}

// Pods of DaemonSets go last where that is asked for, and those that come back again and again are left with a reason: the drain
// ends.
func TestDaemonSetsLast(t *testing.T) {
	stage(t, draintest.Options{Termination: 10 * time.Second}, nil, func(s *stageTest) {
		s.c.AddWorkload(draintest.Workload{Kind: draintest.DaemonSet, Name: "agent"})
		s.web("web", 2, "n1")
		s.sleep(time.Second)
		r := s.request("n1", func(r *drain.Request) { r.Policy.DaemonSets = drain.LastDaemonSets })
		st := s.phase(r, 10*time.Minute, drain.Drained)
		var agents []string
		for i, c := range s.evictions() {
			if strings.HasPrefix(c.Object, "default/agent") {
				agents = append(agents, c.Object)
			} else if len(agents) > 0 {
				t.Errorf("eviction %d: got %s after one of the DaemonSet", i, c.Object)
			}
		}
		if len(agents) != 2 || agents[0] == agents[1] || st.Counts.Skipped != 1 {
			t.Errorf("got %q evicted and %d skipped, want 2 that came back, then the third left alone", agents, st.Counts.Skipped)
		}
		r.Maintenance, r.Policy.DaemonSets = "m2", ""
		n := len(s.evictions())
		s.phase(r, time.Minute, drain.Drained)
		if len(s.evictions()) != n {
			t.Error("by default: got a pod of the DaemonSet evicted, want it skipped")
		}
	})
}

// Pods that tolerate the cordon and come back are evicted a bounded number of times.
func TestToleratingPodsThatBounceAreLeft(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		s.c.AddWorkload(draintest.Workload{Name: "stubborn", Replicas: 1, On: []string{"n1"}, Change: func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n1"}
		}})
		st := s.phase(s.request("n1"), 10*time.Minute, drain.Drained)
		if n := len(s.evictions()); n != 2 || st.Counts.Skipped != 1 || st.Counts.Tolerating != 1 {
			t.Errorf("got %d evictions and counts %+v, want 2 and the pod that is back again", n, st.Counts)
		}
	})
}
