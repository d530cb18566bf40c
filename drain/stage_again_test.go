// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// againSettles fails the test unless the whole settle time begins now.
func (s *stageTest) againSettles(when string, r drain.Request) {
	s.Helper()
	if st := s.pass(r); st.Phase != drain.Settling || st.Reason != "SettleWindow" {
		s.Errorf("%s: got %s, want the settle window", when, stageLine(st))
	}
	began := time.Now()
	s.phase(r, time.Minute, drain.Drained)
	if took := time.Since(began); took < 4900*time.Millisecond || took > 6*time.Second {
		s.Errorf("%s: got it drained after %s, want the whole settle time of 5s", when, took)
	}
}

// While the node was open pods could come: how long it had been empty before does not count.
func TestSettleTimeStartsAgainAfterAnUncordon(t *testing.T) {
	for _, policy := range []drain.UncordonResponse{"Pause", drain.Recordon} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			r := s.request("n1", func(r *drain.Request) { r.Policy.Uncordoned = policy })
			s.phase(r, time.Minute, drain.Settling)
			s.sleep(4 * time.Second)
			s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = false })
			s.sleep(time.Second)
			if policy == "Pause" {
				s.wants(s.pass(r), drain.Paused, drain.UncordonedByOther, "")
				s.sleep(time.Hour)
				s.wants(s.pass(r), drain.Paused, drain.UncordonedByOther, "")
				s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
			} else {
				s.until(r, time.Minute, "the cordon", func(drain.Status) bool { return s.c.LiveNode("n1").Spec.Unschedulable })
			}
			s.sleep(time.Millisecond)
			s.againSettles(string(policy), r)
		})
	}
}

// R-DR-12: the same where a window that closed has given the node back meanwhile.
func TestSettleTimeStartsAgainWithTheNextWindow(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		now := time.Now()
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.OutsideWindow = drain.UndoCordon
			r.Policy.Windows = []drain.Window{{Until: now.Add(3 * time.Second)}, {From: now.Add(time.Hour)}}
		})
		s.wants(s.pass(r), drain.Settling, "SettleWindow", "")
		s.sleep(4 * time.Second)
		s.wants(s.pass(r), drain.Pending, drain.WindowClosed, "")
		s.sleep(time.Hour)
		s.againSettles("next window", r)
	})
}

// A drain that goes on after its holder has wanted the node for something else drains anew, also under the same maintenance: how
// long the node was empty before does not count, nor what was latched then.
func TestSettleTimeStartsAgainAfterAHold(t *testing.T) {
	for _, before := range []drain.Phase{drain.Settling, drain.Drained} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			r := s.request("n1")
			s.phase(r, time.Minute, before)
			s.sleep(time.Second)
			s.wants(s.pass(s.hold(time.Hour)), drain.Holding, "", "")
			s.sleep(10 * time.Minute)
			s.wants(s.pass(s.hold(time.Hour)), drain.Holding, "", "")
			s.againSettles("after "+string(before)+" and a hold", r)
		})
	}
}

// A pod that came while the node was held is evicted by the drain that goes on.
func TestDrainAfterAHoldEvictsWhatCame(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		r := s.request("n1")
		s.phase(r, time.Minute, drain.Drained)
		s.pass(s.hold(time.Hour))
		s.latecomer("late")
		s.sleep(time.Second)
		s.phase(r, time.Minute, drain.Drained)
		if len(s.c.LivePods("n1")) != 0 || len(s.evictions()) != 1 {
			t.Errorf("got %d pods left and %d evictions, want the pod that came evicted", len(s.c.LivePods("n1")), len(s.evictions()))
		}
	})
}

// R-DR-16: how many pods were evicted is the same in each pass after the node is drained, and at its release.
func TestCountOfEvictedPodsStays(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		s.web("web", 5, "n1")
		r := s.request("n1")
		st := s.phase(r, time.Minute, drain.Drained)
		last := st
		for _, when := range []string{"when it is drained", "in the next pass", "a day later", "with the kept status", "at the release"} {
			if st.Counts.Evicted != 5 || len(st.Evicted) != 5 || st.Counts.Remaining != 0 {
				t.Errorf("%s: got %s, want 5 evicted", when, stageLine(st))
			}
			switch when {
			case "in the next pass":
				s.sleep(24 * time.Hour)
			case "a day later":
				s.restart()
				r.Last = &last
			case "with the kept status":
				r.Mode = drain.Release
			}
			st = s.pass(r)
		}
	})
}
