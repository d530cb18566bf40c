// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// unmark removes the mark of a node and lets the cordon stand, as somebody may who tidies annotations.
func (s *stageTest) unmark(node string) {
	s.c.UpdateNode(node, func(n *corev1.Node) { delete(n.Annotations, drain.MarkAnnotation) })
	s.sleep(time.Second)
}

// R-DR-09: a release gives back what was found also where the mark was removed: in the middle of a drain, after it, and with a pass between.
func TestReleaseAfterTheMarkWasRemoved(t *testing.T) {
	for name, until := range map[string]drain.Phase{"in the middle": drain.Draining, "after the drain": drain.Drained} {
		for _, between := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				stage(t, draintest.Options{}, nil, func(s *stageTest) {
					s.web("web", 2, "n1")
					if until == drain.Draining {
						s.stuck()
					}
					r := s.request("n1")
					st := s.phase(r, time.Minute, until)
					r.Last = &st
					s.unmark("n1")
					if between {
						s.pass(r)
						s.sleep(time.Second)
					}
					r.Mode, r.Last = drain.Release, nil
					s.phase(r, time.Minute, drain.Released)
					if n := s.c.LiveNode("n1"); n.Spec.Unschedulable || n.Annotations[drain.MarkAnnotation] != "" {
						t.Errorf("after the release: unschedulable %v, annotations %v", n.Spec.Unschedulable, n.Annotations)
					}
				})
			})
		}
	}
}

// What was latched, the end of a hold, and the time from which steps count are those from before the mark was removed (R-DR-14).
func TestEntryIsWrittenAgainAsItWas(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 2, "n1")
		r := s.request("n1")
		s.phase(r, time.Minute, drain.Drained)
		before := len(s.evictions())
		s.c.AddWorkload(draintest.Workload{Name: "late", Replicas: 2, On: []string{"n1"}})
		s.unmark("n1")
		if st := s.pass(r); st.Phase != drain.Drained || len(s.evictions()) != before {
			t.Errorf("the node was drained: now it is %s, and %d pods were evicted after", st.Phase, len(s.evictions())-before)
		}
	})
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		r := s.hold(time.Hour)
		end := r.HoldUntil
		s.pass(r)
		s.sleep(30 * time.Minute)
		r.HoldUntil = time.Now().Add(time.Hour)
		s.unmark("n1")
		s.pass(r)
		s.sleep(time.Until(end) + time.Second)
		if st := s.pass(r); st.Phase != drain.HoldEnded {
			t.Errorf("the hold is %s after its end: removing the mark has prolonged it", st.Phase)
		}
	})
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.stuck()
		r := s.request("n1")
		began := s.pass(r).Started
		s.sleep(4 * time.Minute)
		s.unmark("n1")
		if st := s.pass(r); !st.Started.Equal(began) {
			t.Errorf("the drain began at %s: now it says %s", began, st.Started)
		}
	})
}

// R-DR-04: a node whose mark was removed keeps its place, whatever would keep the drain from beginning it now; its mark comes back.
func TestNodeWithoutItsMarkKeepsItsPlace(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.finishing()
		s.web("x", 2, "n2")
		healthy := s.request("", func(r *drain.Request) { r.Policy.RequireHealthy = true })
		set := drain.Set{Request: healthy, Groups: [][]string{{"n1", "n2"}}, MaxNodes: intstr.FromInt32(1), LeaveOpen: true}
		st, _, err := s.d.ReconcileSet(s.Context(), set)
		if err != nil {
			t.Fatal(err)
		}
		s.c.SetReady("default", s.c.LivePods("n1")[0].Name, false)
		s.unmark("n1")
		for range 3 {
			set.Last = &st
			if st, _, err = s.d.ReconcileSet(s.Context(), set); err != nil {
				t.Fatal(err)
			}
			s.sleep(time.Second)
		}
		if n1, n2 := s.c.LiveNode("n1"), s.c.LiveNode("n2"); n1.Annotations[drain.MarkAnnotation] == "" || n2.Spec.Unschedulable {
			t.Errorf("n1 has annotations %v, n2 is unschedulable: %v", n1.Annotations, n2.Spec.Unschedulable)
		}
	})
}

// A node that comes under the name of one that was cordoned was not schedulable because that one was.
func TestNodeThatCameUnderTheName(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.stuck()
		r := s.request("n1", func(r *drain.Request) { r.NodeUID = s.c.LiveNode("n1").UID })
		s.pass(r)
		s.c.DeleteNode("n1")
		s.sleep(time.Second)
		s.c.AddNode("n1")
		s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		s.sleep(time.Second)
		r.NodeUID = s.c.LiveNode("n1").UID
		s.pass(r)
		r.Mode = drain.Release
		s.phase(r, time.Minute, drain.Released)
		if !s.c.LiveNode("n1").Spec.Unschedulable {
			t.Error("the node came unschedulable, and the release has made it schedulable")
		}
	})
}

// Two holders hold one node, with an agent that answers slowly: neither is told that the other's question is unanswered (R-DR-14).
func TestTwoHoldsAskForTheHeartbeat(t *testing.T) {
	slow := func(context.Context, string) (bool, error) {
		<-time.After(time.Second)
		return true, nil
	}
	stage(t, draintest.Options{}, func(o *drain.Options) { o.Heartbeat = slow }, func(s *stageTest) {
		a, b := s.hold(time.Hour), s.hold(time.Hour)
		b.Holder = "other"
		for round := range 4 {
			var wg sync.WaitGroup
			for _, r := range []drain.Request{a, b} {
				wg.Go(func() {
					if st, _, err := s.d.ReconcileRequest(s.Context(), r); round > 1 && (err != nil || st.Phase != drain.Holding) {
						t.Errorf("round %d: holder %q: %s, %v", round, r.Holder, st.Phase, err)
					}
				})
			}
			wg.Wait()
			s.sleep(10 * time.Second)
		}
	})
}

// A proof that the machine is off may come long after the pass has given up waiting for it: run with the race detector.
func TestLateProofReadsItsOwnNode(t *testing.T) {
	proof := func(_ context.Context, n *corev1.Node) (bool, error) {
		<-time.After(30 * time.Second)
		return n.Name == "n1", nil
	}
	stage(t, draintest.Options{}, func(o *drain.Options) { o.PoweredOff = proof }, func(s *stageTest) {
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.Escalation = []drain.Escalation{{After: 1, Step: drain.StepOutOfService}}
		})
		for range 4 {
			_, _, _ = s.d.ReconcileRequest(s.Context(), r) // that there is no proof is an error here
			s.sleep(10 * time.Second)
		}
		s.sleep(time.Minute)
	})
}
