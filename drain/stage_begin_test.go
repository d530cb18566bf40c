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

// R-DR-05: an unready pod puts the drain off, by name and without a write, and the drain goes on by itself.
func TestUnreadyPodPutsTheDrainOff(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 2, "n1")
		name := s.c.LivePods("n1")[0].Name
		s.c.SetReady("default", name, false)
		r := s.request("n1", func(r *drain.Request) { r.Policy.RequireHealthy = true })
		st := s.pass(r)
		s.wants(st, drain.Pending, "PodUnhealthy", "")
		if b := s.blocker(st, name); b.Reason != "PodUnhealthy" || len(st.Blockers) != 1 {
			s.Errorf("blockers: got %s, want the unready pod alone", stageLine(st))
		}
		if !strings.Contains(st.Message, "default/"+name) {
			s.Errorf("message: got %q, want the pod's name in it", st.Message)
		}
		if calls := s.c.Log(); len(calls) != 0 {
			s.Errorf("requests: got %v, want none", calls)
		}
		done := make(chan drain.SetStatus, 1)
		go func() {
			st, _ := s.d.Run(s.Context(), drain.Set{Request: r, Groups: [][]string{{"n1"}}}, nil)
			done <- st
		}()
		s.sleep(time.Hour)
		if calls := s.c.Log(); len(calls) != 0 {
			s.Errorf("requests within an hour: got %v, want none", calls)
		}
		s.c.SetReady("default", name, true)
		s.sleep(10 * time.Second)
		select {
		case st := <-done:
			s.wants(st.Nodes[0], drain.Drained, "", drain.OutcomeDrained)
		default:
			s.Error("10 s after the pod became ready: got a drain under way, want it done")
		}
	})
}

// R-DR-05: health is asked for before the drain, not during it: an eviction makes pods unready.
func TestHealthIsNotAskedForOnceTheDrainHasBegun(t *testing.T) {
	stage(t, draintest.Options{Termination: 5 * time.Second}, nil, func(s *stageTest) {
		s.web("web", 2, "n1")
		r := s.request("n1", func(r *drain.Request) { r.Policy.RequireHealthy = true })
		s.pass(r)
		for _, p := range s.c.LivePods("n1") {
			s.c.SetReady(p.Namespace, p.Name, false)
		}
		s.phase(r, time.Minute, drain.Drained)
	})
}

// R-DR-18: what a removal would lose stops the drain before the cordon, each pod by its name.
func TestRemovalThatLosesDataStopsBeforeTheCordon(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		owner := s.c.AddWorkload(draintest.Workload{Kind: draintest.StatefulSet, Name: "db", Replicas: 3, Scale: true})
		own := draintest.OwnedBy(draintest.StatefulSet, "db", owner)
		s.c.AddPod("default", "fine", "n1", own)
		s.c.AddPod("default", "scratch", "n1", own, func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		})
		s.c.AddPod("default", "disk", "n1", own, stageClaim("disk"))
		s.c.AddClaim(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "disk"},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}})
		s.c.AddVolume(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"},
			Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/d"}}}})
		s.c.AddPod("default", "member", "n1", own, func(p *corev1.Pod) { p.Labels = map[string]string{"quorum": "yes"} })
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.Removal = &drain.Removal{}
			r.Policy.Rules = []drain.Rule{{Name: "quorum", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"quorum": "yes"}}, Quorum: true}}
		})
		st := s.pass(r)
		s.wants(st, drain.Failed, "DataLoss", drain.OutcomeFailed)
		want := map[string]drain.Reason{"scratch": drain.LocalStorage, "disk": "LastReplica", "member": "QuorumMember"}
		for name, reason := range want {
			if got := s.blocker(st, name).Reason; got != reason {
				s.Errorf("pod %s: got reason %q, want %q", name, got, reason)
			}
		}
		if len(st.Blockers) != len(want) {
			s.Errorf("blockers: got %s, want %d", stageLine(st), len(want))
		}
		if calls := s.c.Log(); len(calls) != 0 {
			s.Errorf("requests: got %v, want none", calls)
		}
		s.clean("n1")
		r.Policy.Removal = &drain.Removal{AllowLocalData: true, AllowLastReplica: true, AllowQuorum: true}
		s.phase(r, time.Minute, drain.Drained)
	})
}

// stageClaim mounts a claim.
func stageClaim(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
}

// R-DR-12: when the window closes mid-drain no eviction starts any more, what is terminating finishes, and the drain goes on with the next
// window; the cordon is kept or undone meanwhile, by policy.
func TestWindowThatClosesMidDrain(t *testing.T) {
	for _, treatment := range []drain.WindowTreatment{"Hold", drain.UndoCordon} {
		t.Run(string(treatment), func(t *testing.T) {
			o := draintest.Options{Termination: 20 * time.Second, Startup: 10 * time.Second}
			stage(t, o, func(o *drain.Options) { o.NodeConditions = treatment == drain.UndoCordon }, func(s *stageTest) {
				s.web("web", 4, "n1")
				s.c.AddBudget(draintest.MaxUnavailable("default", "web", "1", map[string]string{"app": "web"}))
				s.sleep(0)
				closes, opens := time.Now().Add(25*time.Second), time.Now().Add(time.Hour)
				r := s.request("n1", func(r *drain.Request) {
					r.Policy.Windows = []drain.Window{{Until: closes}, {From: opens, Until: opens.Add(time.Hour)}}
					r.Policy.OutsideWindow = treatment
				})
				done := make(chan drain.SetStatus, 1)
				last := make(chan drain.SetStatus, 1000)
				go func() {
					st, _ := s.d.Run(s.Context(), drain.Set{Request: r, Groups: [][]string{{"n1"}}}, func(st drain.SetStatus) { last <- st })
					done <- st
				}()
				s.sleep(time.Until(opens) - time.Second)
				before := len(s.evictions())
				if before == 0 || before == 4 {
					s.Fatalf("evictions in the first window: got %d, want some and not all", before)
				}
				for _, call := range s.evictions() {
					if !call.Started.Before(closes) {
						s.Errorf("got %s, want none after %s", call, closes)
					}
				}
				if left := len(s.c.LivePods("n1")); treatment == "Hold" && left != 4-before {
					s.Errorf("pods while the window is closed: got %d, want %d: what was terminating finishes", left, 4-before)
				}
				if got := s.c.LiveNode("n1").Spec.Unschedulable; got != (treatment == "Hold") {
					s.Errorf("cordoned while the window is closed: got %v with %s", got, treatment)
				}
				if treatment == drain.UndoCordon {
					s.onlyPlanned()
				}
				var st drain.SetStatus
				for len(last) > 0 {
					st = <-last
				}
				phase := map[drain.WindowTreatment]drain.Phase{"Hold": drain.Paused, drain.UndoCordon: drain.Pending}[treatment]
				s.wants(st.Nodes[0], phase, drain.WindowClosed, "")
				s.sleep(10 * time.Minute)
				select {
				case st := <-done:
					s.wants(st.Nodes[0], drain.Drained, "", drain.OutcomeDrained)
				default:
					s.Error("10 min after the window opened: got a drain under way, want it done")
				}
			})
		})
	}
}

// R-DR-12: a drain that waits for its window has written nothing, and a window that closes while the node settles ends in no harm.
func TestWindowAroundTheDrain(t *testing.T) {
	for _, treatment := range []drain.WindowTreatment{"Hold", drain.UndoCordon} {
		for closes := time.Duration(0); closes < 8*time.Second; closes += 500 * time.Millisecond {
			stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
				s.web("web", 2, "n1")
				from := time.Now().Add(time.Minute)
				r := s.request("n1", func(r *drain.Request) {
					r.Policy.Windows = []drain.Window{{From: from, Until: from.Add(closes + 1)}, {From: from.Add(time.Hour)}}
					r.Policy.OutsideWindow = treatment
				})
				s.until(r, 30*time.Second, "time to pass", func(st drain.Status) bool {
					s.wants(st, drain.Pending, drain.WindowClosed, "")
					return time.Now().After(from.Add(-31 * time.Second))
				})
				if calls := s.c.Log(); len(calls) != 0 {
					s.Errorf("requests before the window: got %v, want none", calls)
				}
				s.phase(r, 2*time.Hour, drain.Drained)
			})
		}
	}
}

// R-DR-12: no eviction starts at the deadline or at the end of a window, also not in a pass that began before and whose evictions
// are slow.
func TestSlowPassStartsNothingPastItsEnd(t *testing.T) {
	for name, bound := range map[string]func(*drain.Request, time.Time){
		"deadline": func(r *drain.Request, end time.Time) { r.Deadline = end },
		"window":   func(r *drain.Request, end time.Time) { r.Policy.Windows = []drain.Window{{Until: end}} },
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, draintest.Options{Latency: time.Second, Termination: time.Second}, nil, func(s *stageTest) {
				s.web("web", 100, "n1")
				end := time.Now().Add(3500 * time.Millisecond)
				r := s.request("n1", func(r *drain.Request) { bound(r, end) })
				for time.Now().Before(end.Add(10 * time.Second)) {
					s.pass(r)
					s.sleep(time.Second)
				}
				if n := len(s.evictions()); n < 16 || n == 100 {
					s.Errorf("evictions: got %d, want some and not all", n)
				}
				late := slices.IndexFunc(s.evictions(), func(c draintest.Call) bool { return !c.Started.Before(end) })
				if late >= 0 {
					s.Errorf("got %s, want none from %s on", s.evictions()[late], end)
				}
				st := s.pass(r)
				if name == "deadline" {
					s.wants(st, drain.Draining, "DeadlinePassed", drain.OutcomeBlocked)
				}
			})
		})
	}
}
