// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// freeze has n1 released and in a crash loop, which freezes the fleet. It returns the release.
func (s *stageTest) freeze() drain.Request {
	s.Helper()
	r := s.released(s.request("n1"))
	s.c.UpdatePod("default", "back", func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	})
	s.sleep(time.Second)
	s.wants(s.pass(r), drain.Soak, drain.Frozen, "")
	return r
}

// freezes reports whether the fleet stands still: a drain of n2 does not begin, and nothing is written for it.
func (s *stageTest) freezes(when string) {
	s.Helper()
	s.c.ClearLog()
	st := s.pass(s.request("n2", func(r *drain.Request) { r.Maintenance = "m2" }))
	if st.Phase != drain.Pending || st.Reason != drain.Frozen {
		s.Errorf("%s: got node n2 %s, want it Pending and Frozen", when, stageLine(st))
	}
	if calls := s.c.Log(); len(calls) != 0 {
		s.Errorf("%s: got %v for node n2, want no request", when, calls)
	}
}

// R-DR-06: the process that has frozen the fleet begins no other node, though its cache does not show the freeze yet.
func TestFreezeIsSeenBeforeTheCacheShowsIt(t *testing.T) {
	stage(t, draintest.Options{CacheLag: 2 * time.Second}, nil, func(s *stageTest) {
		s.sleep(3 * time.Second) // until the cache shows the Nodes
		r := s.released(s.request("n1"))
		s.c.UpdatePod("default", "back", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		})
		s.sleep(5 * time.Second)
		s.wants(s.pass(r), drain.Soak, drain.Frozen, "")
		s.freezes("at once")
		s.sleep(5 * time.Second)
		s.freezes("later")
	})
}

// freezeAgain are the requests that the holder of a frozen node may come with.
func (s *stageTest) freezeAgain(maintenance string, mode drain.Mode) drain.Request {
	return s.request("n1", func(r *drain.Request) {
		r.Mode, r.Maintenance = mode, maintenance
		if mode == drain.Hold {
			r.HoldUntil = time.Now().Add(time.Hour)
		}
	})
}

// freezeModes calls test for each mode in which a frozen node is taken again, under the maintenance that froze and under another.
func freezeModes(t *testing.T, test func(s *stageTest, again drain.Request)) {
	t.Helper()
	for _, mode := range []drain.Mode{drain.Cordon, drain.Hold} {
		for _, maintenance := range []string{"m1", "m3"} {
			t.Run(string(mode)+" "+maintenance, func(t *testing.T) {
				stage(t, draintest.Options{}, nil, func(s *stageTest) {
					s.freeze()
					test(s, s.freezeAgain(maintenance, mode))
				})
			})
		}
	}
}

// R-DR-06: a frozen fleet stays frozen when its holder takes the bad node again, to repair it, and when it gives it back once more.
// Only Resume ends the freeze.
func TestFrozenNodeThatIsTakenAgainStaysFrozen(t *testing.T) {
	freezeModes(t, func(s *stageTest, again drain.Request) {
		s.pass(again)
		if !s.c.LiveNode("n1").Spec.Unschedulable {
			s.Error("node that is taken again: got it schedulable, want it cordoned")
		}
		s.freezes("taken again")
		s.restart()
		s.pass(again)
		s.freezes("taken again, in the next process")
		again.Mode = drain.Release
		for range 3 {
			s.pass(again)
		}
		if s.c.LiveNode("n1").Spec.Unschedulable {
			s.Error("node that is given back again: got it cordoned, want it schedulable")
		}
		s.freezes("given back again")
		s.sleep(time.Hour)
		s.pass(again)
		s.restart()
		s.freezes("an hour later")
		if err := s.d.Resume(s.Context(), "test"); err != nil {
			s.Fatalf("Resume: got %v, want nil", err)
		}
		s.clean("n1")
		s.phase(s.request("n2", func(r *drain.Request) { r.Maintenance = "m2" }), time.Minute, drain.Drained)
	})
}

// R-DR-06, R-DR-14: Resume ends the freeze and not the hold of the node that froze: that is still its holder's.
func TestResumeKeepsWhatTheBadNodeIsHeldFor(t *testing.T) {
	freezeModes(t, func(s *stageTest, again drain.Request) {
		phase := s.pass(again).Phase
		s.freezes("taken again")
		if err := s.d.Resume(s.Context(), "test"); err != nil {
			s.Fatalf("Resume: got %v, want nil", err)
		}
		n := s.c.LiveNode("n1")
		mark := n.Annotations[drain.MarkAnnotation]
		if !n.Spec.Unschedulable || !strings.Contains(mark, string(again.Mode)) || !strings.Contains(mark, again.Maintenance) {
			s.Errorf("after Resume: got cordoned %v, mark %q, want it held as before", n.Spec.Unschedulable, mark)
		}
		if strings.Contains(mark, "CrashLoopBackOff") {
			s.Errorf("after Resume: got mark %q, want the freeze gone from it", mark)
		}
		if st := s.pass(again); st.Phase != phase {
			s.Errorf("after Resume: got %s, want phase %s as before", stageLine(st), phase)
		}
		s.phase(s.request("n2", func(r *drain.Request) { r.Maintenance = "m2" }), time.Minute, drain.Drained)
		again.Mode = drain.Release
		s.phase(again, time.Minute, drain.Released)
		s.clean("n1")
	})
}

// R-DR-06: a freeze that Resume has not been asked about, by its own holder, stands, also where the bad node is held again.
func TestResumeOfAnotherHolderLeavesTheFreeze(t *testing.T) {
	freezeModes(t, func(s *stageTest, again drain.Request) {
		s.pass(again)
		if err := s.d.Resume(s.Context(), "somebody else"); err != nil {
			s.Fatalf("Resume: got %v, want nil", err)
		}
		s.freezes("after the Resume of another holder")
		st := s.pass(s.request("n3", func(r *drain.Request) { r.Holder = "somebody else" }))
		if st.Phase == drain.Pending {
			s.Errorf("another holder's drain: got %s, want it to begin", stageLine(st))
		}
	})
}
