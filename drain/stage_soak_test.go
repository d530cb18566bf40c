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

// released drains n1 and gives it back with a watch of a minute. Cured, what is left of it on the node is one pod that came after.
func (s *stageTest) released(r drain.Request) drain.Request {
	s.Helper()
	s.web("web", 2, "n1")
	s.phase(r, time.Minute, drain.Drained)
	r.Mode = drain.Release
	r.Policy.Soak = time.Minute
	st := s.until(r, time.Second, "a watch", func(st drain.Status) bool { return st.Reason == "Soaking" })
	s.wants(st, drain.Soak, "Soaking", "")
	if n := s.c.LiveNode("n1"); n.Spec.Unschedulable {
		s.Error("watched node: got it cordoned, want it schedulable")
	}
	s.c.AddPod("default", "back", "n1")
	s.sleep(10 * time.Second)
	return r
}

// frozen fails the test unless the holder's fleet stands still for this reason, and another holder's does not.
func (s *stageTest) frozen(r drain.Request, why string) {
	s.Helper()
	st := s.pass(r)
	s.wants(st, drain.Soak, drain.Frozen, "")
	if !strings.Contains(st.Message, why) {
		s.Errorf("message: got %q, want %q in it", st.Message, why)
	}
	s.c.ClearLog()
	other := s.request("n2", func(r *drain.Request) { r.Maintenance = "m2" })
	st = s.pass(other)
	s.wants(st, drain.Pending, drain.Frozen, "")
	if !strings.Contains(st.Message, "n1") || !strings.Contains(st.Message, why) {
		s.Errorf("message for another node: got %q, want the bad node and %q in it", st.Message, why)
	}
	if calls := s.c.Log(); len(calls) != 0 {
		s.Errorf("requests of a frozen fleet: got %v, want none", calls)
	}
	if s.c.LiveNode("n2").Spec.Unschedulable {
		s.Error("node n2: got it cordoned, want it left alone")
	}
}

// R-DR-06: a crash loop within the watch freezes the holder's fleet, with the reason; that survives a restart, and only Resume ends it.
func TestCrashLoopAfterTheReleaseFreezesTheFleet(t *testing.T) {
	for name, crash := range map[string]struct {
		status corev1.ContainerStatus
		why    string
	}{
		"waiting":  {corev1.ContainerStatus{Name: "main", RestartCount: 1, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}, "CrashLoopBackOff"},
		"restarts": {corev1.ContainerStatus{Name: "main", RestartCount: 3}, "has restarted 3 times"},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, draintest.Options{}, nil, func(s *stageTest) {
				r := s.released(s.request("n1"))
				s.wants(s.pass(r), drain.Soak, "Soaking", "")
				s.c.UpdatePod("default", "back", func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{crash.status} })
				s.pass(r)
				s.frozen(r, crash.why)
				s.restart()
				s.frozen(r, crash.why)
				s.c.UpdatePod("default", "back", func(p *corev1.Pod) { p.Status.ContainerStatuses = nil })
				s.sleep(time.Hour)
				s.frozen(r, crash.why) // time and a cured pod do not end it
				if err := s.d.Resume(s.Context(), "somebody else"); err != nil {
					t.Errorf("Resume of another holder: got %v, want nil", err)
				}
				s.frozen(r, crash.why)
				if err := s.d.Resume(s.Context(), "test"); err != nil {
					t.Fatalf("Resume: got %v, want nil", err)
				}
				s.clean("n1")
				s.wants(s.pass(r), drain.Released, "", "")
				s.phase(s.request("n2", func(r *drain.Request) { r.Maintenance = "m2" }), time.Minute, drain.Drained)
			})
		})
	}
}

// R-DR-06: what is not ready at the end of the watch freezes the fleet too.
func TestWhatIsNotReadyAtTheEndOfTheWatchFreezesTheFleet(t *testing.T) {
	for why, spoil := range map[string]func(*stageTest){
		"pod default/back is not ready": func(s *stageTest) { s.c.SetReady("default", "back", false) },
		`node "n1" is not ready`: func(s *stageTest) {
			s.c.UpdateNode("n1", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse })
		},
	} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			r := s.released(s.request("n1"))
			spoil(s)
			s.until(r, 2*time.Minute, "a freeze", func(st drain.Status) bool { return st.Reason == drain.Frozen })
			s.frozen(r, why)
		})
	}
}

// R-DR-06, R-DR-09: a healthy watch ends by itself, at its time, and leaves nothing; also over a restart.
func TestHealthyWatchLeavesNothing(t *testing.T) {
	for _, restart := range []bool{false, true} {
		stage(t, draintest.Options{}, func(o *drain.Options) { o.NodeConditions = true }, func(s *stageTest) {
			r := s.released(s.request("n1"))
			for _, c := range s.c.LiveNode("n1").Status.Conditions {
				if c.Type != corev1.NodeReady {
					t.Errorf("condition %s of a node that is back: got %s, want none", c.Type, c.Status)
				}
			}
			if restart {
				s.restart()
			}
			began := time.Now().Add(-10 * time.Second)
			s.phase(r, 2*time.Minute, drain.Released)
			if took := time.Since(began); took != time.Minute {
				t.Errorf("watch: got %s, want 1m0s", took)
			}
			s.clean("n1")
		})
	}
}

// R-DR-06: the freeze also stops drains of the fleet that are under way, and they go on after Resume.
func TestFreezeStopsDrainsUnderWay(t *testing.T) {
	stage(t, draintest.Options{Termination: 10 * time.Second}, nil, func(s *stageTest) {
		r := s.released(s.request("n1"))
		s.web("api", 2, "n2")
		s.c.AddBudget(draintest.MinAvailable("default", "api", "2", map[string]string{"app": "api"}))
		s.sleep(0)
		other := s.request("n2", func(r *drain.Request) { r.Maintenance = "m2" })
		st := s.until(other, time.Minute, "a blocked drain", func(st drain.Status) bool { return st.Outcome == drain.OutcomeBlocked })
		s.wants(st, drain.Draining, drain.BudgetNeverAllows, drain.OutcomeBlocked)
		s.c.ClearLog()
		s.c.UpdatePod("default", "back", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		})
		s.pass(r)
		s.c.DeleteBudget("default", "api")
		s.wants(s.pass(other), drain.Paused, drain.Frozen, "")
		if calls := s.c.Log(); len(calls) != 1 {
			t.Errorf("requests: got %v, want only the mark of the freeze", calls)
		}
		if err := s.d.Resume(s.Context(), "test"); err != nil {
			t.Fatal(err)
		}
		s.phase(other, time.Minute, drain.Drained)
	})
}

// R-DR-06: a Run that releases is done when a node is frozen: nothing changes any more without somebody acting.
func TestRunOfAReleaseEndsWithTheFreeze(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		r := s.released(s.request("n1"))
		s.c.SetReady("default", "back", false)
		st, err := s.d.Run(s.Context(), drain.Set{Request: r, Groups: [][]string{{"n1", "n2"}}}, nil)
		if err != nil || !st.Done || st.Reason != drain.Frozen || st.Nodes[1].Phase != drain.Released {
			t.Errorf("got %+v, %v, want it done with reason Frozen and n2 released", st, err)
		}
	})
}
