// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// lateLag is how long a scheduler has to see a cordon.
const lateLag = 500 * time.Millisecond

// An unboundCache also knows the pods that are bound to no node.
type unboundCache struct{ *draintest.Cluster }

func (c unboundCache) UnboundPods() (pods []*corev1.Pod, known bool) { return c.Pods(""), true }

// knowsUnbound gives a Drainer such a cache.
func knowsUnbound(o *drain.Options) { o.Cache = unboundCache{o.Cache.(*draintest.Cluster)} }

// pending adds a pod of a workload that is bound to no node, until bind binds it as a scheduler does that had chosen
// the node before the cordon.
func (s *stageTest) pending(name string, changes ...func(*corev1.Pod)) {
	owner := s.c.AddWorkload(draintest.Workload{Name: name, Replicas: 1, Scale: true})
	stays := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"bound": "by the test"} }
	s.c.AddPod("default", name, "", append(changes, stays, draintest.OwnedBy(draintest.ReplicaSet, name, owner))...)
}

func (s *stageTest) bind(name, node string) {
	s.c.UpdatePod("default", name, func(p *corev1.Pod) { p.Spec.NodeName = node })
}

// took drains n1 and returns how long that took.
func (s *stageTest) took(changes ...func(*drain.Request)) (drain.Status, time.Duration) {
	s.Helper()
	began := time.Now()
	st := s.phase(s.request("n1", changes...), time.Minute, drain.Drained)
	return st, time.Since(began)
}

// Where no pod waits to be bound, none can be on its way, and the consistent read follows as soon as a
// scheduler has had time to see the cordon. Pods that a scheduler leaves alone are not on their way.
func TestNothingIsAwaitedWhereNoPodIsUnbound(t *testing.T) {
	gated := func(p *corev1.Pod) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
	}
	for name, prepare := range map[string]func(*stageTest){
		"empty":                 func(*stageTest) {},
		"pods that end at once": func(s *stageTest) { s.web("web", 2, "n1") },
		"a gated pod":           func(s *stageTest) { s.pending("gated", gated) },
		"a finished pod":        func(s *stageTest) { s.pending("done", draintest.InPhase(corev1.PodFailed)) },
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, draintest.Options{}, knowsUnbound, func(s *stageTest) {
				prepare(s)
				if _, took := s.took(); took > lateLag+100*time.Millisecond {
					t.Errorf("drain: got %s, want %s", took, lateLag)
				}
				if lists := len(s.c.Log(draintest.ListPods)); lists != 1 {
					t.Errorf("got %d consistent reads, want 1", lists)
				}
			})
		})
	}
}

// A drain that took longer than the settle time since its cordon has nothing left to wait for, whatever its
// cache knows.
func TestSettleTimeCountsFromTheCordon(t *testing.T) {
	for _, termination := range []time.Duration{3 * time.Second, 20 * time.Second} {
		stage(t, draintest.Options{Termination: termination}, nil, func(s *stageTest) {
			s.web("web", 1, "n1")
			want := max(termination, 5*time.Second)
			if _, took := s.took(); took < want || took > want+time.Second {
				t.Errorf("drain of pods that take %s: got %s, want %s", termination, took, want)
			}
		})
	}
}

// While a pod is unbound it may be bound to the node after any read: such a pod is not left unseen, whether
// it is bound before or after the read would have been.
func TestPodThatIsBoundAfterTheCordonIsNotLeft(t *testing.T) {
	times := []time.Duration{0, lateLag / 2, lateLag + time.Millisecond, 3 * time.Second, 4900 * time.Millisecond}
	for _, bound := range times {
		stage(t, draintest.Options{}, knowsUnbound, func(s *stageTest) {
			s.pending("late")
			time.AfterFunc(bound, func() { s.bind("late", "n1") })
			st, _ := s.took()
			if len(st.Evicted) != 1 || len(s.c.LivePods("n1")) != 0 {
				t.Errorf("bound after %s: got %s, want the late pod evicted", bound, stageLine(st))
			}
		})
	}
}

// A pod that is bound elsewhere ends the wait, and one that is bound nowhere holds a drain up for no more
// than the settle time.
func TestUnboundPodHoldsADrainUpForTheSettleTimeAtMost(t *testing.T) {
	waits := map[time.Duration]time.Duration{2 * time.Second: 2 * time.Second, time.Hour: 5 * time.Second}
	for bound, want := range waits {
		stage(t, draintest.Options{}, knowsUnbound, func(s *stageTest) {
			s.pending("waiting")
			time.AfterFunc(bound, func() { s.bind("waiting", "n2") })
			if _, took := s.took(); took < want || took > want+300*time.Millisecond {
				t.Errorf("bound after %s: drained after %s, want %s", bound, took, want)
			}
		})
	}
}

// A pod that the cache does not show yet is in the consistent read, and the whole settle time follows: the
// race is real here.
func TestPodThatOnlyTheServerShowsStartsTheWholeTime(t *testing.T) {
	stage(t, draintest.Options{}, knowsUnbound, func(s *stageTest) {
		r := s.request("n1")
		s.pass(r)
		s.c.DropWatch()
		s.latecomer("late")
		s.sleep(lateLag + time.Millisecond)
		s.wants(s.pass(r), drain.Draining, "", "")
		s.c.RestoreWatch()
		seen := time.Now()
		st := s.phase(r, time.Minute, drain.Drained)
		if took := time.Since(seen); len(st.Evicted) != 1 || took < 5*time.Second {
			t.Errorf("got %s after %s, want the late pod evicted and the whole settle time after it", stageLine(st), took)
		}
	})
}

// A process that takes a drain over has not seen the cordon come, and counts from its own first look.
func TestSettleTimeCountsFromTheFirstLookOfAProcess(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		r := s.request("n1")
		s.pass(r)
		s.sleep(4 * time.Second)
		s.restart()
		if _, took := s.took(); took < 5*time.Second {
			t.Errorf("drain after a restart: got %s, want 5s", took)
		}
	})
}

// A settle time of the policy is waited for as it is.
func TestSettleTimeOfThePolicyIsKept(t *testing.T) {
	stage(t, draintest.Options{}, knowsUnbound, func(s *stageTest) {
		if _, took := s.took(func(r *drain.Request) { r.Policy.Settle = ptr.To(7 * time.Second) }); took < 7*time.Second {
			t.Errorf("drain: got %s, want 7s", took)
		}
	})
}
