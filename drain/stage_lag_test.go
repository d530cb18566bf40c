// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// lagRelease releases n1 pass by pass, and fails the test if that is called done while the server still has the mark or the cordon.
func (s *stageTest) lagRelease(r drain.Request, limit time.Duration) {
	s.Helper()
	r.Mode = drain.Release
	for end := time.Now().Add(limit); time.Now().Before(end); {
		st, after, err := s.d.ReconcileRequest(s.Context(), r)
		n := s.c.LiveNode("n1")
		if st.Phase == drain.Released && err == nil {
			if mark := n.Annotations[drain.MarkAnnotation]; mark != "" || n.Spec.Unschedulable {
				s.Fatalf("released: got cordoned %v and mark %q on the server, want none", n.Spec.Unschedulable, mark)
			}
			return
		}
		if after <= 0 {
			s.Fatalf("not released: got %s, %v and no further try", stageLine(st), err)
		}
		s.sleep(after)
	}
	s.Fatalf("after %s: got it not released", limit)
}

// R-DR-07, R-DR-09, R-DR-17: a new process whose cache has not seen the mark of the one before does not call the node released.
func TestReleaseByANewProcessWithALateCache(t *testing.T) {
	for _, mode := range []drain.Mode{drain.Cordon, drain.Drain, drain.Hold} {
		for _, lost := range []bool{false, true} {
			stage(t, draintest.Options{CacheLag: 2 * time.Second}, nil, func(s *stageTest) {
				s.sleep(5 * time.Second)
				r := s.request("n1", func(r *drain.Request) { r.Mode, r.HoldUntil = mode, time.Now().Add(time.Hour) })
				if lost {
					s.c.DropWatch()
					time.AfterFunc(20*time.Second, s.c.RestoreWatch)
				}
				s.pass(r)
				s.restart()
				s.lagRelease(r, 5*time.Minute)
				s.sleep(time.Minute)
				s.clean("n1")
				s.wants(s.pass(s.request("n1", func(r *drain.Request) { r.Mode = drain.Release })), drain.Released, "", "")
			})
		}
	}
}

// R-DR-04: MaxNodes holds over a restart, and where the answer to a cordon was lost, also while the cache does not show that cordon and
// another node comes first by now: a node that may have been begun keeps its place until the server has said whether it has.
func TestMaxNodesCountsWhatMayHaveBegun(t *testing.T) {
	for name, spoil := range map[string]func(s *stageTest, set drain.Set){
		"restart": func(s *stageTest, set drain.Set) {
			_, _, _ = s.d.ReconcileSet(s.Context(), set)
			s.restart()
			_, _, _ = s.d.ReconcileSet(s.Context(), set)
		},
		"lost": func(s *stageTest, set drain.Set) {
			s.c.Faults(draintest.On(draintest.PatchNode, 1, draintest.TimeoutAfter(time.Second)))
			_, _, _ = s.d.ReconcileSet(s.Context(), set)
		},
	} {
		stage(t, draintest.Options{CacheLag: 5 * time.Second}, nil, func(s *stageTest) {
			s.finishing()
			s.sleep(10 * time.Second)
			set := drain.Set{Request: s.request(""), Groups: [][]string{{"n1", "n2"}}, MaxNodes: intstr.FromInt32(1), LeaveOpen: true}
			spoil(s, set)
			set.Groups[0][0], set.Groups[0][1] = "n2", "n1"
			for end := time.Now().Add(time.Minute); time.Now().Before(end); s.sleep(100 * time.Millisecond) {
				_, _, _ = s.d.ReconcileSet(s.Context(), set)
				if !s.c.LiveNode("n1").Spec.Unschedulable || s.c.LiveNode("n2").Spec.Unschedulable {
					t.Fatalf("%s: got n2 begun beside n1, want it to wait", name)
				}
			}
		})
	}
}

// R-DR-04: a cordon that met another write, and is put off then for a reason of the node, does not keep the place of another node.
func TestPlaceOfANodeThatHasNotBegunIsFree(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 1, "n1")
		s.c.Faults(draintest.On(draintest.PatchNode, 1, draintest.Conflict()))
		r := s.request("", func(r *drain.Request) { r.Policy.RequireHealthy = true })
		set := drain.Set{Request: r, Groups: [][]string{{"n1", "n2"}}, MaxNodes: intstr.FromInt32(1), LeaveOpen: true}
		st, _, err := s.d.ReconcileSet(s.Context(), set)
		if err != nil || st.Nodes[0].Reason != "WriteConflict" || st.Nodes[1].Reason != "WaitingForSlot" {
			t.Fatalf("first pass: got %+v, %v, want n1 to be tried again and n2 to wait", st, err)
		}
		s.c.SetReady("default", s.c.LivePods("n1")[0].Name, false)
		s.sleep(time.Second)
		if st, _, err = s.d.ReconcileSet(s.Context(), set); err != nil || st.Nodes[0].Reason != "PodUnhealthy" {
			t.Fatalf("next pass: got %+v, %v, want n1 put off", st, err)
		}
		if !s.c.LiveNode("n2").Spec.Unschedulable {
			t.Errorf("next pass: got %+v, want n2 begun", st)
		}
	})
}

// R-DR-04: MaxNodes holds also for a caller that keeps no status, in passes that come before the cache has seen the cordon of the one
// before.
func TestMaxNodesHoldsWithALateCacheAndNoLast(t *testing.T) {
	stage(t, draintest.Options{CacheLag: 2 * time.Second}, nil, func(s *stageTest) {
		s.web("first", 1, "n1")
		s.web("second", 1, "n2")
		s.sleep(10 * time.Second)
		name := s.c.LivePods("n1")[0].Name
		s.c.SetReady("default", name, false)
		s.sleep(5 * time.Second)
		s.c.SetReady("default", name, true)
		s.sleep(1990 * time.Millisecond)
		healthy := s.request("", func(r *drain.Request) { r.Policy.RequireHealthy = true })
		set := drain.Set{Request: healthy, Groups: [][]string{{"n1", "n2"}}, MaxNodes: intstr.FromInt32(1), LeaveOpen: true}
		st, _, err := s.d.ReconcileSet(s.Context(), set)
		if err != nil || st.Nodes[0].Reason != "PodUnhealthy" || !s.c.LiveNode("n2").Spec.Unschedulable {
			t.Fatalf("first pass: got %+v, %v, want n1 put off and n2 begun", st, err)
		}
		for range 10 {
			s.sleep(20 * time.Millisecond) // the cache has seen the pod, and not the cordon
			if st, _, err = s.d.ReconcileSet(s.Context(), set); err != nil {
				t.Fatal(err)
			}
			if s.c.LiveNode("n1").Spec.Unschedulable {
				t.Fatalf("next pass: got n1 begun beside n2: %+v", st)
			}
			s.wants(st.Nodes[0], drain.Pending, "WaitingForSlot", "")
		}
		for end := time.Now().Add(time.Hour); !st.Done && time.Now().Before(end); s.sleep(time.Second) {
			if st, _, err = s.d.ReconcileSet(s.Context(), set); err != nil {
				t.Fatal(err)
			}
		}
		begun, drained := s.cordons()
		if !st.Done || begun["n1"].Before(drained["n2"]) {
			t.Errorf("got n1 begun at %s, n2 drained at %s, done %v, want one after the other", begun["n1"], drained["n2"], st.Done)
		}
	})
}
