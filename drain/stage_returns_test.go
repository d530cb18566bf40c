// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// comers has on n1 a pod of one ReplicaSet, and returns what adds another one there, with its number and when it was made.
func (s *stageTest) comers() (add func(i int, made time.Time)) {
	uid := s.c.AddWorkload(draintest.Workload{Name: "web", Replicas: 1, Scale: true})
	add = func(i int, made time.Time) {
		s.c.AddPod("default", fmt.Sprintf("web-%d", i), "n1", draintest.OwnedBy(draintest.ReplicaSet, "web", uid), func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(made.Truncate(time.Second))
		})
	}
	add(0, time.Now().Add(-time.Hour))
	return add
}

// late has on n1 pods of one ReplicaSet and drains it, while further pods of the same one come to the node: one whenever all have left, as the bindings that a scheduler
// has sent before it saw the cordon do where the API server is slow. They were made so long before they come. Open is done
// before each.
func (s *stageTest) late(comers int, before time.Duration, open ...func()) drain.Request {
	s.Helper()
	add := s.comers()
	r := s.request("n1", func(r *drain.Request) { r.Policy.Settle, r.Policy.Uncordoned = ptr.To(time.Minute), drain.Recordon })
	for i := 1; i <= comers; i++ {
		s.until(r, time.Minute, "an empty node", func(st drain.Status) bool { return st.Phase == drain.Settling || st.Outcome == drain.OutcomeBlocked })
		for _, f := range open {
			f()
		}
		add(i, time.Now().Add(-before))
	}
	return r
}

// R-DR-03: pods that a scheduler had sent to the node before it saw the cordon, and that come late, leave like those that were there. They have not come back: they
// were made before any was evicted.
func TestPodsThatComeLateLeave(t *testing.T) {
	for _, ends := range []time.Duration{0, time.Second} { // at once, so that nobody sees it going, or not
		stage(t, draintest.Options{Termination: ends}, nil, func(s *stageTest) {
			r := s.late(5, 10*time.Minute)
			s.phase(r, 10*time.Minute, drain.Drained)
			if n := len(s.evictions()); n != 6 {
				t.Errorf("pods that end in %s: got %d evictions, want one of each of 6 pods", ends, n)
			}
		})
	}
}

// R-DR-03: those that are made after the one before was evicted have come back.
func TestPodsThatAreMadeAfterwardsHaveComeBack(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		r := s.late(2, 0)
		st := s.until(r, 10*time.Minute, "a blocked drain", func(st drain.Status) bool { return st.Outcome == drain.OutcomeBlocked })
		s.wants(st, drain.Draining, "Bounced", drain.OutcomeBlocked)
		if n := len(s.evictions()); n != 2 {
			t.Errorf("got %d evictions, want 2", n)
		}
	})
}

// Two that come at once in the place of two that were evicted have come back once.
func TestPodsThatComeBackTogetherHaveComeBackOnce(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		s.c.AddWorkload(draintest.Workload{Name: "pinned", Replicas: 2, On: []string{"n1", "n1"}, Change: func(p *corev1.Pod) { p.Spec.NodeName = "n1" }})
		r := s.request("n1")
		st := s.until(r, 10*time.Minute, "a blocked drain", func(st drain.Status) bool { return st.Outcome == drain.OutcomeBlocked })
		if n := len(s.evictions()); n != 4 || len(st.Blockers) != 2 {
			t.Errorf("got %d evictions and %s, want both evicted twice, and then blocked", n, stageLine(st))
		}
	})
}

// Pods that come back are evicted a bounded number of times also where no answer of the API server arrives.
func TestLostAnswersDoNotHideWhoComesBack(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		s.limitsPinned(draintest.ReplicaSet)
		s.c.Faults(draintest.Always(draintest.Evict, draintest.TimeoutAfter(time.Second)))
		st := s.until(s.request("n1"), time.Hour, "a blocked drain", func(st drain.Status) bool { return st.Outcome == drain.OutcomeBlocked })
		s.wants(st, drain.Draining, "Bounced", drain.OutcomeBlocked)
		if n := len(s.evictions()); n != 2 {
			t.Errorf("got %d evictions, want 2", n)
		}
	})
}

// R-DR-03: what comes to a node while somebody else has it open has not come back, whether the node is cordoned again or the drain is paused.
func TestWhatComesToAnOpenNodeHasNotComeBack(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		open := func() { s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = false }) }
		s.phase(s.late(4, 0, open), 10*time.Minute, drain.Drained)
		if n := len(s.evictions()); n != 5 {
			t.Errorf("got %d evictions, want one of each of 5 pods", n)
		}
	})
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		add, r := s.comers(), s.request("n1", func(r *drain.Request) { r.Policy.Settle = ptr.To(time.Minute) })
		for i := range 3 {
			s.phase(r, time.Minute, drain.Settling)
			s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = false })
			add(i+1, time.Now())
			s.sleep(time.Second)
			s.wants(s.pass(r), drain.Paused, drain.UncordonedByOther, "")
			s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
			s.sleep(time.Second)
		}
		s.phase(r, 10*time.Minute, drain.Drained)
	})
}

// R-DR-03: nor has what comes outside of the windows, when the node is given back.
func TestWhatComesOutsideTheWindowsHasNotComeBack(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		add, begin := s.comers(), time.Now()
		at := func(hours int, more time.Duration) time.Time { return begin.Add(time.Duration(hours)*time.Hour + more) }
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.Settle, r.Policy.OutsideWindow = ptr.To(10*time.Minute), drain.UndoCordon
			for h := range 3 {
				r.Policy.Windows = append(r.Policy.Windows, drain.Window{From: at(h, 0), Until: at(h, 2*time.Minute)})
			}
			r.Policy.Windows = append(r.Policy.Windows, drain.Window{From: at(3, 0)})
		})
		for h := range 3 {
			s.phase(r, time.Minute, drain.Settling)
			s.sleep(time.Until(at(h, 3*time.Minute)))
			s.wants(s.pass(r), drain.Pending, drain.WindowClosed, "")
			add(h+1, time.Now())
			s.sleep(time.Until(at(h+1, time.Second)))
		}
		s.phase(r, time.Hour, drain.Drained)
		if n := len(s.evictions()); n != 4 {
			t.Errorf("got %d evictions, want one of each of 4 pods", n)
		}
	})
}

// Pods that come back whatever is on the Node are evicted no more often where somebody restores it, without our mark and its cordon.
func TestRestoredNodeDoesNotBeginTheCountAnew(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		s.limitsPinned(draintest.ReplicaSet)
		r := s.request("n1")
		blocked := func(st drain.Status) bool { return st.Outcome == drain.OutcomeBlocked }
		s.until(r, 10*time.Minute, "a blocked drain", blocked)
		for range 3 {
			s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = false; delete(n.Annotations, drain.MarkAnnotation) })
			s.sleep(time.Second)
			s.until(r, 10*time.Minute, "a blocked drain", blocked)
			s.sleep(time.Minute)
		}
		if n := len(s.evictions()); n != 2 {
			t.Errorf("got %d evictions, want 2", n)
		}
	})
}
