// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// restoreRun runs a set for a minute, and returns what it says when it is cancelled.
func (s *stageTest) restoreRun(set drain.Set) drain.SetStatus {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	st, err := s.d.Run(ctx, set, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		s.Fatalf("Run: got %+v, %v, want it cut short", st, err)
	}
	return st
}

// R-DR-17: a Run that is cancelled gives back what it has taken, and not what its holder has cordoned for another maintenance.
func TestCancelledRunLeavesTheCordonOfAnotherMaintenance(t *testing.T) {
	for _, lag := range []time.Duration{0, 2 * time.Second} {
		stage(t, draintest.Options{CacheLag: lag}, nil, func(s *stageTest) {
			s.sleep(5 * time.Second)
			s.stuck()
			s.sleep(5 * time.Second)
			before := s.request("n3", func(r *drain.Request) { r.Mode, r.Maintenance = drain.Cordon, "m0" })
			s.phase(before, time.Minute, drain.Cordoned)
			mark := s.c.LiveNode("n3").Annotations[drain.MarkAnnotation]
			st := s.restoreRun(drain.Set{Request: s.request(""), Groups: [][]string{{"n1"}, {"n2"}, {"n3"}}})
			n := s.c.LiveNode("n3")
			if got := n.Annotations[drain.MarkAnnotation]; !n.Spec.Unschedulable || got != mark {
				t.Errorf("n3: got cordoned %v with mark %q, want it as it was, with %q", n.Spec.Unschedulable, got, mark)
			}
			if st.Nodes[2].Phase == drain.Released {
				t.Errorf("n3: got %s, want it not called released", stageLine(st.Nodes[2]))
			}
			if st.Nodes[0].Phase != drain.Released {
				t.Errorf("n1: got %s, want it released", stageLine(st.Nodes[0]))
			}
			s.clean("n1")
			s.clean("n2")
			s.sleep(time.Minute)
			s.wants(s.pass(before), drain.Cordoned, "", "")
			before.Mode = drain.Release
			s.phase(before, time.Minute, drain.Released)
			s.clean("n3")
		})
	}
}

// R-DR-07, R-DR-17: what an earlier process has taken for this very maintenance is given back too, also where this one never came to it.
func TestCancelledRunReleasesWhatAnEarlierProcessTook(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.stuck()
		s.web("api", 1, "n3")
		s.c.AddBudget(draintest.MinAvailable("default", "api", "1", map[string]string{"app": "api"}))
		s.sleep(0)
		set := drain.Set{Request: s.request(""), Groups: [][]string{{"n1", "n3"}}, MaxNodes: intstr.FromInt32(2)}
		if _, _, err := s.d.ReconcileSet(s.Context(), set); err != nil {
			t.Fatal(err)
		}
		if !s.c.LiveNode("n1").Spec.Unschedulable || !s.c.LiveNode("n3").Spec.Unschedulable {
			t.Fatal("first process: got a node that is schedulable, want both cordoned")
		}
		s.restart()
		ctx, cancel := stageCancelled(s)
		defer cancel()
		st, err := s.d.Run(ctx, set, nil)
		if !errors.Is(err, context.Canceled) || st.Nodes[0].Phase != drain.Released || st.Nodes[1].Phase != drain.Released {
			t.Errorf("Run: got %+v, %v, want both released", st, err)
		}
		s.clean("n1")
		s.clean("n3")
	})
}

// R-DR-07, R-DR-17: also where the cache of this one has not seen the cordon when it is cancelled.
func TestCancelledRunReleasesWhatItsCacheHasNotSeen(t *testing.T) {
	for _, after := range []time.Duration{0, 100 * time.Millisecond, time.Second} {
		stage(t, draintest.Options{CacheLag: 2 * time.Second}, nil, func(s *stageTest) {
			s.stuck()
			s.sleep(10 * time.Second)
			set := drain.Set{Request: s.request(""), Groups: [][]string{{"n1"}, {"n2"}}}
			if _, _, err := s.d.ReconcileSet(s.Context(), set); err != nil {
				t.Fatal(err)
			}
			s.restart()
			s.c.Faults(draintest.On(draintest.GetNode, 1, draintest.Unavailable()))
			ctx, cancel := context.WithTimeout(s.Context(), after)
			defer cancel()
			if st, err := s.d.Run(ctx, set, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Run: got %+v, %v, want it cut short", st, err)
			}
			s.sleep(time.Minute)
			s.clean("n1")
		})
	}
}

// Under Recordon, the last word of others about a node counts at the release: an administrator who has uncordoned a node that was found
// cordoned gets it back schedulable, and one who has not, cordoned.
func TestReleaseGivesBackTheLastWordOfOthers(t *testing.T) {
	for _, mode := range []drain.Mode{drain.Cordon, drain.Drain} {
		for _, lag := range []time.Duration{0, time.Second} {
			for _, uncordons := range []bool{false, true} {
				stage(t, draintest.Options{CacheLag: lag}, nil, func(s *stageTest) {
					s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
					s.stuck()
					s.sleep(5 * time.Second)
					r := s.request("n1", func(r *drain.Request) { r.Mode, r.Policy.Uncordoned = mode, drain.Recordon })
					s.pass(r)
					s.sleep(5 * time.Second)
					if uncordons {
						s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = false })
						s.sleep(5 * time.Second)
						s.until(r, 5*time.Minute, "the cordon", func(drain.Status) bool { return s.c.LiveNode("n1").Spec.Unschedulable })
						s.sleep(5 * time.Second)
					}
					r.Mode = drain.Release
					s.phase(r, time.Minute, drain.Released)
					if got := s.c.LiveNode("n1").Spec.Unschedulable; got == uncordons {
						t.Errorf("%s, cache late by %s, uncordoned by others %v: got the node cordoned %v after the release", mode, lag, uncordons, got)
					}
				})
			}
		}
	}
}

// restoreWindow has a hook asked on n1 and the conditions on it, under a window that closes in 30 s and opens again in an hour.
func restoreWindow(t *testing.T, test func(s *stageTest, r drain.Request, a *stageResponder)) {
	t.Helper()
	a := &stageResponder{answer: stageBeats}
	change := func(o *drain.Options) {
		o.NodeConditions, o.Responders = true, map[string]drain.Responder{"a": a}
	}
	stage(t, draintest.Options{}, change, func(s *stageTest) {
		owner := s.c.AddWorkload(draintest.Workload{Name: "vm", Replicas: 1, Scale: true})
		s.c.AddPod("default", "vm", "n1", draintest.OwnedBy(draintest.ReplicaSet, "vm", owner),
			func(p *corev1.Pod) { p.Annotations = map[string]string{drain.HookAnnotation: "a"} })
		now := time.Now()
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.OutsideWindow = drain.UndoCordon
			r.Policy.Windows = []drain.Window{{Until: now.Add(30 * time.Second)}, {From: now.Add(time.Hour)}}
		})
		s.until(r, 20*time.Second, "a question", func(drain.Status) bool { return len(a.asked) > 0 })
		if len(a.asked) != 1 || len(s.c.LiveNode("n1").Status.Conditions) != 5 {
			t.Fatalf("first window: got %d questions and conditions %v, want 1 and those of a drain", len(a.asked), s.c.LiveNode("n1").Status.Conditions)
		}
		s.sleep(31 * time.Second)
		test(s, r, a)
	})
}

func restoreClosed(st drain.Status) bool { return st.Reason == drain.WindowClosed }

// R-DR-12, R-DR-15, R-DR-09: a window that closes and gives the node back takes everything back: cordon, mark, and what responders
// were asked; of the conditions one says that its maintenance is planned; with the next window all of it begins anew.
func TestWindowThatGivesTheNodeBackTakesEverythingBack(t *testing.T) {
	restoreWindow(t, func(s *stageTest, r drain.Request, a *stageResponder) {
		s.wants(s.until(r, 10*time.Second, "a closed window", restoreClosed), drain.Pending, drain.WindowClosed, "")
		s.onlyPlanned()
		if !slices.Equal(a.cancelled, a.asked[:1]) {
			s.Errorf("taken back: got %v, want %v once", a.cancelled, a.asked[:1])
		}
		asked := len(a.asked)
		s.sleep(10 * time.Minute)
		s.wants(s.pass(r), drain.Pending, drain.WindowClosed, "")
		s.onlyPlanned()
		if len(a.asked) != asked || len(a.cancelled) != 1 {
			s.Errorf("while the window is closed: got %d questions and %d taken back, want none more", len(a.asked)-asked, len(a.cancelled))
		}
		s.sleep(time.Hour)
		st := s.until(r, time.Minute, "a question", func(drain.Status) bool { return len(a.asked) > asked })
		if len(a.asked) != asked+1 || s.blocker(st, "vm").Reason != "WaitingForHook" || len(s.evictions()) != 0 {
			s.Errorf("next window: got %d questions, %d evictions and %s, want it asked anew", len(a.asked)-asked, len(s.evictions()), stageLine(st))
		}
		s.conditions("DrainInProgress=True Drained=False MaintenancePlanned=False MaintenanceInProgress=True")
		a.says(drain.HookAnswer{Progress: drain.HookDone}, nil)
		s.phase(r, time.Minute, drain.Drained)
	})
}

// R-DR-12, R-DR-15: a responder that cannot be reached when the window closes does not keep the node, and is asked again to let go.
func TestWindowThatClosesTriesAgainToTakeHooksBack(t *testing.T) {
	restoreWindow(t, func(s *stageTest, r drain.Request, a *stageResponder) {
		a.broken = errors.New("not now")
		var err error
		for after := time.Duration(0); err == nil && after < 10*time.Second; s.sleep(after) {
			_, after, err = s.d.ReconcileRequest(s.Context(), r) // a write may meet that of another controller first
		}
		if !errors.Is(err, a.broken) {
			s.Errorf("got %v, want the responder's error", err)
		}
		if n := s.c.LiveNode("n1"); n.Spec.Unschedulable || strings.Contains(n.Annotations[drain.MarkAnnotation], "m1") {
			s.Error("node: got a cordon or a mark, want it given back whatever responders do")
		}
		a.broken = nil
		s.until(r, 30*time.Minute, "the request taken back", func(drain.Status) bool { return len(a.cancelled) > 0 })
		if !slices.Equal(a.cancelled, a.asked[:1]) {
			s.Errorf("taken back: got %v, want %v once", a.cancelled, a.asked[:1])
		}
		s.onlyPlanned()
	})
}
