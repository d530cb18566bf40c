// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// stuck has on n1 a pod "stuck-…" under a budget that never allows, and two that can leave.
func (s *stageTest) stuck() {
	s.web("stuck", 1, "n1")
	s.web("web", 2, "n1")
	s.c.AddBudget(draintest.MinAvailable("default", "stuck", "1", map[string]string{"app": "stuck"}))
	s.sleep(0)
}

// finishing has on n1 a pod that may finish by itself, and two that can leave.
func (s *stageTest) finishing() {
	s.c.AddPod("default", "job", "n1", func(p *corev1.Pod) {
		p.Labels = map[string]string{"drain.belay.dev/behavior": "WaitCompleted"}
	})
	s.web("web", 2, "n1")
	s.sleep(0)
}

// R-DR-16: each result has its own outcome.
func TestOutcomes(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		s.stuck()
		s.web("fine", 1, "n2")
		blocked := s.until(s.request("n1"), time.Hour, "an outcome", func(st drain.Status) bool { return st.Outcome != "" })
		s.wants(blocked, drain.Draining, drain.BudgetNeverAllows, drain.OutcomeBlocked)
		if blocked.Counts.Blocked != 1 || blocked.Counts.Remaining != 1 || blocked.Counts.Evicted != 2 {
			t.Errorf("counts: got %+v, want 1 blocked of 1 remaining and 2 evicted", blocked.Counts)
		}
		s.wants(s.phase(s.request("n2"), time.Hour, drain.Drained), drain.Drained, "", drain.OutcomeDrained)
		s.wants(s.pass(s.request("n9")), drain.Failed, drain.NodeNotFound, drain.OutcomeFailed)
		late := s.request("n3", func(r *drain.Request) { r.Deadline = time.Now() })
		s.wants(s.pass(late), drain.Pending, "DeadlinePassed", drain.OutcomeBlocked)
		force := s.request("n1", func(r *drain.Request) {
			r.Policy.Escalation = []drain.Escalation{{After: time.Minute, Step: drain.StepDelete}}
		})
		st := s.phase(force, 5*time.Minute, drain.Drained)
		s.wants(st, drain.Drained, "", drain.OutcomeForced)
		s.restart()
		s.wants(s.pass(force), drain.Drained, "", drain.OutcomeForced)
	})
}

// askedBeside checks that so many pods were evicted, and that the one that is left was asked at once, and then now and
// then.
func (s *stageTest) askedBeside(accepted int, began time.Time) {
	s.Helper()
	if n := len(s.accepted()); n != accepted {
		s.Errorf("evictions that were accepted: got %d, want %d", n, accepted)
	}
	asked := slices.DeleteFunc(s.evictions(), func(c draintest.Call) bool { return c.Err == nil })
	if len(asked) < 2 || len(asked) > 7 || asked[0].Started.Sub(began) > time.Second {
		s.Errorf("evictions under the budget that allows none: got %v, want one at once, and more at growing times", asked)
	}
}

// A step of the ladder is announced with its time from the start on, taken at that time and not before, for the pods alone that are
// still there, with the UID and with the grace period that it has.
func TestLadderIsAnnouncedAndThenClimbed(t *testing.T) {
	for _, grace := range []*int64{nil, ptr.To[int64](3)} {
		stage(t, draintest.Options{Termination: 10 * time.Second}, nil, func(s *stageTest) {
			s.stuck()
			began := time.Now()
			at := began.Add(7*time.Minute + 3*time.Second)
			r := s.request("n1", func(r *drain.Request) {
				r.Policy.Escalation = []drain.Escalation{{After: at.Sub(began), Step: drain.StepDelete, GracePeriodSeconds: grace}}
			})
			announced := 0
			st := s.until(r, time.Hour, "the step", func(st drain.Status) bool {
				if len(s.c.Log(draintest.Delete)) > 0 {
					return true
				}
				b := st.Blockers[slices.IndexFunc(st.Blockers, func(b drain.Blocker) bool { return b.Reason == drain.BudgetNeverAllows })]
				if b.Next != drain.StepDelete || !b.NextAt.Equal(at) || st.Outcome != "" {
					t.Errorf("got %s, want the step announced for %s and no outcome yet", stageLine(st), at)
				}
				announced++
				return false
			})
			calls := s.c.Log(draintest.Delete)
			if announced == 0 || len(calls) != 1 || !calls[0].Started.Equal(at) || calls[0].UID == "" || ptr.Deref(calls[0].GracePeriodSeconds, 0) != ptr.Deref(grace, 0) {
				t.Errorf("announced %d times, deletions: got %v, want one at %s with UID and grace period %v", announced, calls, at, grace)
			}
			if len(st.Forced) != 1 || len(st.Evicted) != 3 || st.Forced[0].UID != calls[0].UID {
				t.Errorf("got %s, want the deleted pod forced and all 3 evicted", stageLine(st))
			}
			s.askedBeside(2, began)
			s.wants(s.phase(r, time.Hour, drain.Drained), drain.Drained, "", drain.OutcomeForced)
		})
	}
}

// R-DR-03, R-DR-16: a deletion that was announced comes also where no eviction is ever answered, after three of them.
func TestDeletionComesWhereEvictionsGetNoAnswer(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		s.web("web", 1, "n1")
		s.sleep(time.Second)
		s.c.Faults(draintest.Always(draintest.Evict, draintest.TimeoutBefore(10*time.Second)))
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.Escalation = []drain.Escalation{{After: 2 * time.Second, Step: drain.StepDelete}}
		})
		s.wants(s.phase(r, 30*time.Minute, drain.Drained), drain.Drained, "", drain.OutcomeForced)
		deleted := s.c.Log(draintest.Delete)
		asked := s.evictions()
		if len(asked) < 3 || len(deleted) != 1 || deleted[0].Started.Sub(asked[2].Answered) < 10*time.Second {
			t.Errorf("got evictions %v, deletions %v, want three evictions, and one deletion 10 s later", asked, deleted)
		}
	})
}

// R-DR-03: no pod is deleted before the server has refused its eviction, and then had 10 s for an operator to act on
// that. It holds for a budget that may allow again as well, and for a pod that the policy protects.
func TestNoDeletionBeforeAnEviction(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		s.stuck()
		s.web("pair", 2, "n1", "n2")
		s.c.AddBudget(draintest.MinAvailable("default", "pair", "1", map[string]string{"app": "pair"}))
		s.c.SetReady("default", "pair-00002", false)
		s.c.AddPod("default", "alone", "n1")
		s.sleep(time.Second)
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.Escalation = []drain.Escalation{{After: 2 * time.Second, Step: drain.StepDelete}}
		})
		s.phase(r, time.Hour, drain.Drained)
		refused := map[types.UID]time.Time{}
		for _, call := range s.evictions() {
			if _, ok := refused[call.UID]; !ok && call.Err != nil {
				refused[call.UID] = call.Answered
			}
		}
		deleted := s.c.Log(draintest.Delete)
		for _, call := range deleted {
			if at, ok := refused[call.UID]; !ok || call.Started.Sub(at) < 10*time.Second {
				t.Errorf("got %s; its eviction was refused: %t, at %s; want it 10 s earlier", call, ok, at)
			}
		}
		if len(deleted) != 2 {
			t.Errorf("deletions: got %v, want those of the two pods that budgets hold", deleted)
		}
	})
}

// R-DR-03: a budget that allows none is asked at once all the same. What an operator then changes of the pod is told,
// and a budget that opens lets the pod go at once.
func TestRefusedEvictionIsASignal(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.stuck()
		began := time.Now()
		r := s.request("n1")
		st := s.until(r, time.Minute, "one pod", func(st drain.Status) bool { return st.Counts.Remaining == 1 })
		calls := slices.DeleteFunc(s.evictions(), func(c draintest.Call) bool { return c.Err == nil })
		if len(calls) != 1 || calls[0].Started.Sub(began) > time.Second {
			t.Fatalf("refused evictions: got %v, want one at once", calls)
		}
		s.wants(st, drain.Draining, drain.BudgetNeverAllows, drain.OutcomeBlocked)
		s.c.UpdatePod("default", "stuck-00001", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"operator.example.com/moves": "yes"}
		})
		s.sleep(time.Second)
		st = s.pass(r)
		if b := st.Blockers[0]; b.Action != drain.Wait || b.Reason != "OperatorAtWork" || !strings.Contains(b.Message, "its annotations changed") {
			t.Errorf("got %+v, want it to wait for an operator", b)
		}
		s.c.UpdateBudget("default", "stuck", func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable.IntVal = 0 })
		s.sleep(time.Second)
		s.pass(r)
		if n := len(s.accepted()); n != 3 {
			t.Errorf("accepted evictions: got %d, want that of the pod too", n)
		}
	})
}

// A budget that has refused and is removed, as Longhorn's is when its engines have left the node, lets the pod go at
// once.
func TestPodGoesWhenItsBudgetIsRemoved(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.stuck()
		done := s.run(s.request(""), "n1")
		s.sleep(3 * time.Second)
		if n := len(s.accepted()); n != 2 {
			t.Fatalf("accepted evictions: got %d, want those of the two other pods", n)
		}
		s.c.DeleteBudget("default", "stuck")
		removed := time.Now()
		s.sleep(9 * time.Second)
		s.drained(done)
		calls := s.evictions()
		if took := calls[len(calls)-1].Started.Sub(removed); took > 2*time.Second {
			t.Errorf("last eviction: got it %s after the budget was removed, want it at once", took)
		}
	})
}

// taint is the effect of the taint that forces pods off n1, or nothing.
func (s *stageTest) taint() (effect corev1.TaintEffect) {
	for _, t := range s.c.LiveNode("n1").Spec.Taints {
		if t.Key == corev1.TaintNodeOutOfService {
			return t.Effect
		}
	}
	return ""
}

// The last step is taken only with proof that the machine is off, it is announced once there is proof, and the release takes the taint away.
func TestOutOfServiceOnlyWithProof(t *testing.T) {
	var off bool
	var broken error
	proof := func(context.Context, *corev1.Node) (bool, error) { return off, broken }
	stage(t, draintest.Options{}, func(o *drain.Options) { o.PoweredOff = proof }, func(s *stageTest) {
		off, broken = false, nil
		s.web("web", 2, "n1")
		s.c.StopKubelet("n1")
		s.sleep(10 * time.Minute)
		began := time.Now()
		at := began.Add(10 * time.Minute)
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.Escalation = []drain.Escalation{{After: 10 * time.Minute, Step: drain.StepOutOfService}}
		})
		st := s.pass(r)
		if b := st.Blockers[0]; b.Reason != "NodeUnreachable" || b.Next != "" {
			t.Errorf("without proof: got %+v, want the pod unreachable and nothing announced", b)
		}
		s.sleep(time.Minute)
		off = true
		if b := s.pass(r).Blockers[0]; b.Next != drain.StepOutOfService || !b.NextAt.Equal(at) {
			t.Errorf("with proof: got %+v, want the step announced for %s", b, at)
		}
		off = false
		end := at.Add(time.Hour)
		s.until(r, 3*time.Hour, "time to pass", func(drain.Status) bool { return time.Now().After(end) })
		broken = errors.New("no route to the controller")
		if _, _, err := s.d.ReconcileRequest(s.Context(), r); !errors.Is(err, broken) || s.taint() != "" {
			t.Errorf("proof that cannot be had: got %v and taint %q, want the error and no taint", err, s.taint())
		}
		off, broken = true, nil
		s.pass(r)
		if got := s.taint(); got != corev1.TaintEffectNoExecute {
			t.Errorf("taint with proof: got %q, want NoExecute", got)
		}
		for _, p := range s.c.LivePods("n1") {
			s.c.Finish(p.Namespace, p.Name) // what the cluster does to pods of such a node
		}
		s.restart()
		s.wants(s.phase(r, time.Minute, drain.Drained), drain.Drained, "", drain.OutcomeForced)
		if calls := s.c.Log(draintest.Evict, draintest.Delete); len(calls) != 0 {
			t.Errorf("got %v, want nothing sent for pods that are ending", calls)
		}
		s.c.StartKubelet("n1")
		r.Mode = drain.Release
		s.phase(r, time.Minute, drain.Released)
		s.sleep(time.Second)
		s.clean("n1")
	})
}

// A taint that somebody else has put stays theirs.
func TestOutOfServiceTaintOfOthersStays(t *testing.T) {
	proof := func(context.Context, *corev1.Node) (bool, error) { return true, nil }
	stage(t, draintest.Options{}, func(o *drain.Options) { o.PoweredOff = proof }, func(s *stageTest) {
		s.web("web", 1, "n1")
		s.c.StopKubelet("n1")
		s.c.UpdateNode("n1", func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
		})
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.Escalation = []drain.Escalation{{After: time.Second, Step: drain.StepOutOfService}}
		})
		s.pass(r)
		s.sleep(time.Minute)
		s.pass(r)
		r.Mode = drain.Release
		s.phase(r, time.Minute, drain.Released)
		if s.taint() == "" {
			t.Error("taint of somebody else: got it removed, want it to stay")
		}
	})
}

// A pod that has outlived its grace period is reported with what holds it, and blocks: it is not asked again.
func TestStuckTerminatingPodsAreToldApart(t *testing.T) {
	for reason, spoil := range map[drain.Reason]func(*stageTest){
		"FinalizersRemain": func(s *stageTest) {
			for _, p := range s.c.LivePods("n1") {
				s.c.UpdatePod(p.Namespace, p.Name, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} })
			}
		},
		"StuckTerminating": func(*stageTest) {},
		"NodeUnreachable":  func(s *stageTest) { s.c.StopKubelet("n1") },
	} {
		t.Run(fmt.Sprint(reason), func(t *testing.T) {
			stage(t, draintest.Options{NoKubelets: true}, nil, func(s *stageTest) {
				s.web("web", 1, "n1")
				spoil(s)
				st := s.until(s.request("n1"), time.Hour, "a blocked drain", func(st drain.Status) bool { return st.Outcome == drain.OutcomeBlocked })
				if st.Blockers[0].Reason != reason {
					t.Errorf("got %s, want reason %s", stageLine(st), reason)
				}
				if n := len(s.evictions()); n != 1 {
					t.Errorf("evictions: got %d, want 1", n)
				}
			})
		})
	}
}
