// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// limitsPinned has on n1 a workload whose template names the node: no scheduler is asked, and its pods always come back.
func (s *stageTest) limitsPinned(kind string) {
	s.c.AddWorkload(draintest.Workload{Kind: kind, Name: "pinned", Replicas: 1, On: []string{"n1"},
		Change: func(p *corev1.Pod) { p.Spec.NodeName = "n1" }})
}

// R-DR-03: pods that come back to the node again and again are not evicted again and again, whoever their owner is. They block, with a
// reason, and their neighbours leave.
func TestPodsThatComeBackAreNotEvictedForEver(t *testing.T) {
	for _, kind := range []string{draintest.ReplicaSet, draintest.StatefulSet} {
		t.Run(kind, func(t *testing.T) {
			stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
				s.limitsPinned(kind)
				s.web("web", 2, "n1")
				r := s.request("n1")
				s.until(r, 10*time.Minute, "a blocked drain", func(st drain.Status) bool { return st.Outcome == drain.OutcomeBlocked })
				end := time.Now().Add(time.Hour)
				st := s.until(r, 2*time.Hour, "time to pass", func(drain.Status) bool { return time.Now().After(end) })
				s.wants(st, drain.Draining, "Bounced", drain.OutcomeBlocked)
				if len(st.Blockers) != 1 || st.Blockers[0].Action != drain.Block || !strings.Contains(st.Blockers[0].Message, "pinned") {
					t.Errorf("got %s, want the pod that came back blocked, with its owner named", stageLine(st))
				}
				calls := slices.DeleteFunc(s.evictions(), func(c draintest.Call) bool { return !strings.Contains(c.Object, "pinned") })
				if len(calls) != 2 || len(s.evictions()) != 4 {
					t.Errorf("evictions: got %v, want 2 of the pods that come back, and 2 of their neighbours", s.evictions())
				}
			})
		})
	}
}

// A rule that says Evict means it: such pods are evicted as often as they come.
func TestRuleThatSaysEvictGoesOnWithPodsThatComeBack(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		s.limitsPinned(draintest.StatefulSet)
		ctx, cancel := context.WithTimeout(s.Context(), 10*time.Minute)
		defer cancel()
		r := s.request("", func(r *drain.Request) {
			r.Policy.Rules = []drain.Rule{{Name: "all", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pinned"}}, Behavior: drain.BehaviorEvict}}
		})
		st, _ := s.d.Run(ctx, drain.Set{Request: r, Groups: [][]string{{"n1"}}}, nil)
		if n := len(s.evictions()); n < 6 {
			t.Errorf("evictions in 10 min: got %d, %+v, want it to go on", n, st)
		}
	})
}

// R-DR-03, R-DR-11: a server that gives no answer, again and again, is one reason with one beginning, in each pass: not one that changes
// with the turn of the retries.
func TestServerWithoutAnAnswerIsOneReason(t *testing.T) {
	for name, fault := range map[string]draintest.Fault{
		"500":     draintest.InternalError(),
		"504":     draintest.GatewayTimeout(),
		"timeout": draintest.TimeoutBefore(2 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, draintest.Options{}, nil, func(s *stageTest) {
				s.web("web", 1, "n1")
				s.c.Faults(draintest.Always(draintest.Evict, fault))
				r := s.request("n1")
				began := time.Now()
				for time.Since(began) < 30*time.Minute {
					st := s.pass(r)
					b := st.Blockers[0]
					if b.Reason != drain.NoAnswer || !b.Since.Equal(began) {
						t.Fatalf("after %s: got %s since %s, want %s since %s", time.Since(began), b.Reason, b.Since, drain.NoAnswer, began)
					}
					s.sleep(7 * time.Second)
				}
				if n := len(s.evictions()); n < 10 || n > 40 {
					t.Errorf("evictions in 30 min: got %d, want it tried again every 2 min at the latest, and not more often than it pays", n)
				}
				s.c.ClearFaults()
				s.phase(r, 10*time.Minute, drain.Drained)
			})
		})
	}
}

// R-DR-03: a budget with a number for minAvailable expects one pod less while a pod of its StatefulSet is gone and not created again. That is not
// told as a budget that never allows any, not for a moment; one that has come to stay is.
func TestBudgetThatDipsIsNotBlocked(t *testing.T) {
	stage(t, draintest.Options{Termination: 5 * time.Second, ControllerLag: 3 * time.Second}, nil, func(s *stageTest) {
		s.c.AddWorkload(draintest.Workload{Kind: draintest.StatefulSet, Name: "db", Replicas: 5, On: []string{"n1", "n1", "n1", "n2", "n3"}})
		s.c.AddBudget(draintest.MinAvailable("default", "db", "4", map[string]string{"app": "db"}))
		s.sleep(time.Second)
		dips := 0
		st := s.until(s.request("n1"), 10*time.Minute, "a drained node", func(st drain.Status) bool {
			if budget := s.c.Budgets("default")[0]; budget.Status.ExpectedPods == 4 {
				dips++
			}
			if len(st.Blockers) > 0 && (st.Outcome == drain.OutcomeBlocked || st.Blockers[0].Reason == drain.BudgetNeverAllows) {
				t.Fatalf("got %s, want it to wait", stageLine(st))
			}
			return st.Phase == drain.Drained
		})
		if dips == 0 {
			t.Errorf("got %s and no pass in which the budget expected 4 pods, want this test to see one", stageLine(st))
		}
	})
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		pod := s.c.AddPod("default", "spare", "n2", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "stuck"} })
		s.stuck()
		s.c.SetReady("default", "spare", false)
		s.sleep(time.Second)
		r := s.request("n1")
		st := s.until(r, time.Minute, "a pod that waits", func(st drain.Status) bool { return len(st.Blockers) == 1 })
		s.wants(st, drain.Draining, "", "")
		if err := s.c.Delete(s.Context(), drain.PodRef{Namespace: "default", Name: pod.Name, UID: pod.UID}, nil); err != nil {
			t.Fatal(err)
		}
		s.sleep(10 * time.Second)
		began := time.Now()
		st = s.until(r, 2*time.Minute, "a blocked drain", func(st drain.Status) bool { return st.Outcome == drain.OutcomeBlocked })
		if took := time.Since(began); st.Reason != drain.BudgetNeverAllows || took > 70*time.Second {
			t.Errorf("got %s after %s, want it about a minute after the last dip", stageLine(st), took)
		}
	})
}

// limitsFight uncordons n1 a moment after each cordon, until stop is called.
func (s *stageTest) limitsFight() (stop func()) {
	return s.c.Watch(func(c drain.Change) {
		if c.Node != "n1" {
			return
		}
		time.AfterFunc(5*time.Millisecond, func() {
			if s.c.LiveNode("n1").Spec.Unschedulable {
				s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = false })
			}
		})
	})
}

// A controller that takes every cordon back at once is not fought with as many writes as the server takes: the pauses grow from
// 10 s to 2 min, one event tells of it, and the drain goes on when it is over.
func TestRecordonDoesNotFight(t *testing.T) {
	stage(t, draintest.Options{CacheLag: 10 * time.Millisecond}, nil, func(s *stageTest) {
		s.stuck()
		s.sleep(time.Second)
		stop := s.limitsFight()
		done := s.run(s.request("", func(r *drain.Request) { r.Policy.Uncordoned = drain.Recordon }), "n1")
		s.sleep(time.Minute)
		if n := len(s.c.Log(draintest.PatchNode)); n < 3 || n > 8 {
			t.Errorf("writes in the first minute: got %d, want the cordon and few more", n)
		}
		s.sleep(time.Hour)
		if n := len(s.c.Log(draintest.PatchNode)); n < 25 || n > 45 {
			t.Errorf("writes in an hour: got %d, want one each 2 min", n)
		}
		if all := s.events.all(); len(all) > 10 {
			t.Errorf("events in an hour: got %d, want few: %q", len(all), all)
		}
		events := slices.DeleteFunc(s.events.all(), func(e string) bool { return e != "Warning Recordoned" })
		if len(events) != 1 {
			t.Errorf("events of the cordon: got %d, want 1; all: %q", len(events), s.events.all())
		}
		stop()
		s.c.DeleteBudget("default", "stuck")
		s.sleep(3 * time.Minute)
		s.drained(done)
	})
}

// limitsReported runs a set until something is reported past the deadline, and returns when, and what of n1.
func (s *stageTest) limitsReported(r drain.Request) (at time.Duration, st drain.Status) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Hour)
	defer cancel()
	_, _ = s.d.Run(ctx, drain.Set{Request: r, Groups: [][]string{{"n1"}}}, func(set drain.SetStatus) {
		if n := set.Nodes[0]; n.Reason == "DeadlinePassed" && at == 0 {
			at, st = time.Since(began), n
		}
	})
	return at, st
}

// The deadline is reported when it comes, not when the drain happens to look again, whatever it waits for.
func TestDeadlineIsReportedAtItsTime(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*stageTest, *drain.Request)
		phase drain.Phase
	}{
		"blocked": {func(s *stageTest, _ *drain.Request) { s.stuck() }, drain.Draining},
		"unready": {func(s *stageTest, r *drain.Request) {
			r.Policy.RequireHealthy = true
			s.web("web", 1, "n1")
			s.c.SetReady("default", s.c.LivePods("n1")[0].Name, false)
		}, drain.Pending},
		"window": {func(_ *stageTest, r *drain.Request) {
			r.Policy.Windows = []drain.Window{{From: time.Now().Add(time.Hour)}}
		}, drain.Pending},
		"uncordoned": {func(s *stageTest, _ *drain.Request) {
			s.stuck()
			time.AfterFunc(3*time.Second, func() {
				s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = false })
			})
		}, drain.Paused},
		"frozen": {func(s *stageTest, _ *drain.Request) {
			s.c.UpdateNode("n2", func(n *corev1.Node) {
				n.Annotations = map[string]string{drain.MarkAnnotation: `{"holders":[{"holder":"test","mode":"Drain","frozen":"bad","released":"2000-01-01T00:00:00Z"}]}`}
			})
		}, drain.Pending},
		"no answer": {func(s *stageTest, _ *drain.Request) {
			s.web("web", 1, "n1")
			s.c.Faults(draintest.Always(draintest.Evict, draintest.InternalError()))
		}, drain.Draining},
	} {
		for _, after := range []time.Duration{7 * time.Second, 95 * time.Second, 160 * time.Second, 611 * time.Second} {
			t.Run(fmt.Sprint(name, " ", after), func(t *testing.T) {
				stage(t, draintest.Options{}, nil, func(s *stageTest) {
					r := s.request("", func(r *drain.Request) { r.Deadline = time.Now().Add(after) })
					c.spoil(s, &r)
					at, st := s.limitsReported(r)
					if at < after || at > after+100*time.Millisecond {
						t.Errorf("deadline at %s: got it reported at %s", after, at)
					}
					s.wants(st, c.phase, "DeadlinePassed", drain.OutcomeBlocked)
				})
			})
		}
	}
}

// At the deadline no further eviction starts. A node that needs none any more, and is watched for latecomers alone, becomes drained.
func TestDeadlineDoesNotStopANodeThatSettles(t *testing.T) {
	for _, pods := range []int{0, 3} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.web("web", pods, "n1")
			began := time.Now()
			r := s.request("n1", func(r *drain.Request) { r.Deadline = began.Add(3 * time.Second) })
			s.phase(r, time.Second, drain.Settling)
			s.sleep(3 * time.Second)
			s.wants(s.pass(r), drain.Settling, "SettleWindow", "")
			s.wants(s.phase(r, time.Minute, drain.Drained), drain.Drained, "", drain.OutcomeDrained)
			if took := time.Since(began); took < 5*time.Second || took > 6*time.Second {
				t.Errorf("%d pods: got it drained after %s, want 5s", pods, took)
			}
		})
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			r := s.request("", func(r *drain.Request) { r.Deadline = time.Now().Add(3 * time.Second) })
			st, err := s.d.Run(s.Context(), drain.Set{Request: r, Groups: [][]string{{"n1"}}}, nil)
			if err != nil || !st.Done || st.Nodes[0].Outcome != drain.OutcomeDrained {
				t.Errorf("Run: got %+v, %v, want it drained", st, err)
			}
		})
	}
}

// R-DR-18: a dry run of what cannot be meant is refused, by the name of what is wrong: an empty answer would say that nothing is lost.
func TestDryRunOfWhatCannotBeMeantIsRefused(t *testing.T) {
	bad := drain.Policy{LocalData: "Evcit"}
	selector := drain.Policy{Rules: []drain.Rule{{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Inn"}}}}}}
	for name, c := range map[string]struct {
		policy drain.Policy
		nodes  []string
		want   string
	}{
		"unknown node": {drain.Policy{Removal: &drain.Removal{}}, []string{"n1", "typo"}, "typo"},
		"bad word":     {bad, []string{"n1"}, "localData"},
		"bad selector": {selector, []string{"n1"}, "selector"},
		"node twice":   {drain.Policy{}, []string{"n1", "n2", "n1"}, "n1"},
	} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.web("web", 3, "n1")
			if found, err := s.d.Preflight(s.Context(), c.policy, c.nodes...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: Preflight: got %v, %v, want an error with %q", name, found, err, c.want)
			}
			if plan, err := s.d.Plan(s.Context(), c.policy, c.nodes...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: Plan: got %+v, %v, want an error with %q", name, plan, err, c.want)
			}
			if _, err := s.d.Preflight(s.Context(), drain.Policy{Removal: &drain.Removal{}}, "n1", "n2"); err != nil {
				t.Errorf("Preflight of what can be meant: got %v, want nil", err)
			}
		})
	}
}
