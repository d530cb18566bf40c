// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// Another client's uncordon pauses the drain until the node is cordoned again, by any client. The release leaves the
// cordon of another client as it is.
func TestUncordonByOthersPauses(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.stuck()
		r := s.request("n1")
		s.pass(r)
		s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = false })
		s.c.DeleteBudget("default", "stuck")
		s.c.ClearLog()
		end := time.Now().Add(time.Hour)
		st := s.until(r, 2*time.Hour, "time to pass", func(drain.Status) bool { return time.Now().After(end) })
		s.wants(st, drain.Paused, drain.UncordonedByOther, "")
		if calls := s.c.Log(); len(calls) != 0 {
			t.Errorf("requests while paused: got %v, want none", calls)
		}
		s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		s.phase(r, time.Minute, drain.Drained)
		s.wantReleased(true, r)
		if events := s.events.all(); !slices.Contains(events, "Normal CordonKept") {
			t.Errorf("got the events %q, want one that says why the node stays cordoned", events)
		}
	})
}

// An empty node that somebody has uncordoned is not drained: pods may come at any time.
func TestUncordonedNodeIsNotDrained(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		r := s.request("n1")
		s.phase(r, time.Minute, drain.Settling)
		s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = false })
		s.sleep(time.Hour)
		s.wants(s.pass(r), drain.Paused, drain.UncordonedByOther, "")
	})
}

// Two processes that drain a node under one holder, each for a maintenance of its own, do not take it from each other
// with every pass: the later one has it, and the earlier one writes nothing more.
func TestAnotherMaintenanceOfTheHolderSupersedes(t *testing.T) {
	for _, mode := range []drain.Mode{drain.Drain, drain.Cordon} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.stuck()
			earlier := s.request("n1", func(r *drain.Request) { r.Mode = mode })
			later := s.request("n1", func(r *drain.Request) { r.Mode, r.Maintenance = mode, "m2" })
			s.pass(earlier)
			first := s.d
			s.restart()
			s.pass(later)
			second := s.d
			s.sleep(time.Second)
			s.c.ClearLog()
			for range 3 {
				s.d = first
				s.wants(s.pass(earlier), drain.Failed, drain.Superseded, drain.OutcomeFailed)
				s.d = second
				if st := s.pass(later); st.Phase == drain.Failed {
					t.Errorf("%s: the later maintenance is %s", mode, stageLine(st))
				}
			}
			for _, call := range s.c.Log() {
				if call.Patch != "" {
					t.Errorf("%s: got %v, want no further write of the node", mode, call)
				}
			}
			later.Mode = drain.Release
			s.phase(later, time.Minute, drain.Released)
			s.sleep(time.Second)
			s.clean("n1")
		})
	}
}

// Recordon takes the node back, and evicts nothing before it has.
func TestRecordonTakesTheNodeBack(t *testing.T) {
	for _, mode := range []drain.Mode{drain.Drain, drain.Cordon} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.stuck()
			r := s.request("n1", func(r *drain.Request) { r.Mode, r.Policy.Uncordoned = mode, drain.Recordon })
			s.pass(r)
			s.sleep(time.Second)
			s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = false })
			s.sleep(time.Second)
			s.c.DeleteBudget("default", "stuck")
			s.c.ClearLog()
			s.pass(r)
			if calls := s.c.Log(); len(calls) != 1 || !strings.Contains(calls[0].Patch, `"unschedulable":true`) {
				t.Errorf("%s: got %v, want the cordon alone", mode, calls)
			}
			s.phase(r, time.Minute, map[drain.Mode]drain.Phase{drain.Drain: drain.Drained, drain.Cordon: drain.Cordoned}[mode])
			r.Mode = drain.Release
			s.phase(r, time.Minute, drain.Released)
			s.sleep(time.Second)
			s.clean("n1")
		})
	}
}

// A node that is deleted mid-drain ends it, and one that comes under its name is left alone, for this maintenance, whoever remembers.
func TestNodeDeletedAndReplacedMidDrain(t *testing.T) {
	for _, last := range []bool{false, true} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.stuck()
			r := s.request("n1")
			st := s.pass(r)
			uid := st.NodeUID
			step := func() drain.Status {
				if last {
					s.restart()
					kept := st
					r.Last = &kept
				}
				st = s.pass(r)
				return st
			}
			s.c.DeleteNode("n1")
			s.wants(step(), drain.Failed, drain.NodeNotFound, drain.OutcomeFailed)
			s.wants(step(), drain.Failed, drain.NodeNotFound, drain.OutcomeFailed)
			if len(st.Evicted) != 2 || st.NodeUID != uid {
				t.Errorf("got %s, want the 2 evicted pods and the node's UID in it", stageLine(st))
			}
			s.c.AddNode("n1")
			s.c.ClearLog()
			for range 3 {
				s.wants(step(), drain.Failed, drain.NodeReplaced, drain.OutcomeFailed)
			}
			if calls := s.c.Log(); len(calls) != 0 {
				t.Errorf("requests for the new node: got %v, want none", calls)
			}
			release := r
			release.Mode, release.Last = drain.Release, nil
			s.wants(s.pass(release), drain.Released, "", "")
			s.clean("n1")
			r.Maintenance, r.Last = "m2", nil
			s.wants(s.pass(r), drain.Draining, drain.BudgetNeverAllows, drain.OutcomeBlocked)
		})
	}
}

// A request for a Node by its UID leaves another one of that name alone from the first pass on.
func TestNodeUIDOfTheRequestIsKept(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 1, "n1")
		r := s.request("n1", func(r *drain.Request) { r.NodeUID = "another" })
		s.wants(s.pass(r), drain.Failed, drain.NodeReplaced, drain.OutcomeFailed)
		if calls := s.c.Log(); len(calls) != 0 {
			t.Errorf("requests: got %v, want none", calls)
		}
	})
}

// A mark that cannot be read ends every mode as failed, with what to do about it, and nothing is done to that node; others go on.
func TestDamagedMark(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 1, "n1")
		s.web("api", 1, "n2")
		damage := func(n *corev1.Node) { n.Annotations = map[string]string{drain.MarkAnnotation: `{"holders":[`} }
		s.c.UpdateNode("n1", damage)
		for _, mode := range []drain.Mode{drain.Cordon, drain.Drain, drain.Hold, drain.Release} {
			r := s.request("n1", func(r *drain.Request) { r.Mode, r.HoldUntil = mode, time.Now().Add(time.Hour) })
			st, after, err := s.d.ReconcileRequest(s.Context(), r)
			if err != nil || after <= 0 || !strings.Contains(st.Message, drain.MarkAnnotation) || !strings.Contains(st.Message, "n1") {
				t.Errorf("%s: got %s, %s, %v, want a message that names node and annotation, and another try", mode, stageLine(st), after, err)
			}
			s.wants(st, drain.Failed, "MarkUnreadable", drain.OutcomeFailed)
		}
		if calls := s.c.Log(); len(calls) != 0 {
			t.Errorf("requests: got %v, want none", calls)
		}
		if err := s.d.Resume(s.Context(), "test"); err == nil {
			t.Error("Resume: got nil, want the damaged mark told")
		}
		s.phase(s.request("n2"), time.Minute, drain.Drained)
		s.c.UpdateNode("n1", func(n *corev1.Node) { delete(n.Annotations, drain.MarkAnnotation) })
		s.phase(s.request("n1"), time.Minute, drain.Drained)
	})
}

// A release right after the cordon gives the node back also when the cache has not seen the cordon, or its answer was lost. R-DR-09, R-DR-17.
func TestReleaseRightAfterTheCordonWithALateCache(t *testing.T) {
	for name, fault := range map[string]*draintest.Fault{
		"late cache": nil, "answer lost": ptr.To(draintest.TimeoutAfter(time.Second)), "request lost": ptr.To(draintest.TimeoutBefore(time.Second)),
		"refused": ptr.To(draintest.Unavailable()), "gone": ptr.To(draintest.Gone()),
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, draintest.Options{CacheLag: 5 * time.Second}, nil, func(s *stageTest) {
				s.sleep(10 * time.Second)
				s.web("web", 1, "n1")
				if fault != nil {
					s.c.Faults(draintest.On(draintest.PatchNode, 1, *fault))
				}
				r := s.request("n1")
				if _, _, err := s.d.ReconcileRequest(s.Context(), r); (err != nil) != (fault != nil && name != "gone") {
					t.Errorf("cordon: got %v", err)
				}
				r.Mode = drain.Release
				s.phase(r, time.Minute, drain.Released)
				if n := s.c.LiveNode("n1"); n.Spec.Unschedulable || n.Annotations[drain.MarkAnnotation] != "" {
					t.Errorf("right after the release: got a cordon or a mark, want none")
				}
				s.sleep(time.Minute)
				s.clean("n1")
				n := len(s.evictions())
				r.Mode, r.Maintenance = drain.Drain, "m2"
				s.c.ClearLog()
				s.pass(r)
				if calls := s.c.Log(); len(calls) == 0 || calls[0].Verb != draintest.PatchNode {
					t.Errorf("after %d evictions and a release, the next drain: got %v, want the cordon first", n, calls)
				}
			})
		})
	}
}

// R-DR-01: a drain that begins again right after a release, with a cache that still shows the old cordon, cordons first.
func TestDrainRightAfterAReleaseWithALateCache(t *testing.T) {
	stage(t, draintest.Options{CacheLag: 5 * time.Second}, nil, func(s *stageTest) {
		s.web("web", 30, "n1")
		s.sleep(10 * time.Second)
		r := s.request("n1", func(r *drain.Request) { r.Mode = drain.Cordon })
		s.phase(r, time.Minute, drain.Cordoned)
		s.sleep(10 * time.Second)
		r.Mode = drain.Release
		s.phase(r, time.Minute, drain.Released)
		r.Mode = drain.Drain
		s.phase(r, 5*time.Minute, drain.Drained)
		cordoned := false
		for _, c := range s.c.Log(draintest.PatchNode, draintest.Evict) {
			switch {
			case c.Wrote && strings.Contains(c.Patch, `"unschedulable":`):
				cordoned = strings.Contains(c.Patch, `"unschedulable":true`)
			case c.Verb == draintest.Evict && !cordoned:
				t.Fatalf("got %s on a node that is open", c)
			}
		}
	})
}

// An ended context starts no write.
func TestEndedContextStartsNoWrite(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 1, "n1")
		ctx, cancel := stageCancelled(s)
		defer cancel()
		for range 20 { // which of two channels that are ready is received from is random
			if _, _, err := s.d.ReconcileRequest(ctx, s.request("n1")); !errors.Is(err, ctx.Err()) {
				t.Errorf("got %v, want %v", err, ctx.Err())
			}
		}
		if calls := s.c.Log(); len(calls) != 0 {
			t.Errorf("requests: got %v, want none", calls)
		}
	})
}

// A request for a Node that does not exist yet asks for no time, and a watch names the Node when it comes.
func TestNodeThatComesWakesItsRequest(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		woken := make(chan string, 10)
		defer s.d.Watch(func(node string) { woken <- node })()
		r := s.request("n9")
		s.wants(s.pass(r), drain.Failed, drain.NodeNotFound, drain.OutcomeFailed)
		s.c.AddNode("n9")
		s.sleep(time.Second)
		select {
		case node := <-woken:
			if node != "n9" {
				t.Errorf("woken for %q, want n9", node)
			}
		default:
			t.Error("got no word that the Node is there")
		}
		s.phase(r, time.Minute, drain.Drained)
	})
}
