// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// unguardedCases are the rules by which pods pass their budgets.
func unguardedCases() []serverCase {
	never := count{expected: 2, desired: 2, healthy: 1}
	return []serverCase{
		{"a pending pod passes every budget and keeps its grace period", func(s server) {
			s.frozen("web", never)
			pod := s.webPod("a", InPhase(corev1.PodPending))
			s.wants("eviction", s.evict(pod), answer{})
			s.leaving(pod)
			s.has("web", never)
		}},
		{"a pod without a node is gone at once", func(s server) {
			s.frozen("web", never)
			pod := s.Pod(s.t, NewPod(s.ns, "a", "", Labelled("web")))
			s.wants("eviction", s.evict(pod), answer{})
			s.gone(pod)
		}},
		{"a finished pod passes every budget and is gone at once", func(s server) {
			s.frozen("web", never)
			for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
				pod := s.webPod("a", InPhase(phase))
				s.wants("eviction of a pod in phase "+string(phase), s.evict(pod), answer{})
				s.gone(pod)
			}
			s.has("web", never)
		}},
		{"two budgets do not stop a pending pod", func(s server) {
			s.frozen("one", never)
			s.frozen("two", never)
			s.wants("eviction", s.evict(s.webPod("a", InPhase(corev1.PodPending))), answer{})
		}},
		{"a pod that is being deleted is accepted again, spends nothing and keeps its time", func(s server) {
			s.frozen("web", count{expected: 2, desired: 1, healthy: 2, allowed: 1})
			pod := s.webPod("a")
			s.wants("first eviction", s.evict(pod), answer{})
			before := s.leaving(pod)
			s.wants("second eviction", s.evict(pod), answer{})
			if after := s.leaving(pod); !after.DeletionTimestamp.Equal(before.DeletionTimestamp) {
				s.errorf("deletion timestamp: got %v, want %v as before", after.DeletionTimestamp, before.DeletionTimestamp)
			}
			s.has("web", count{expected: 2, desired: 1, healthy: 2, disrupted: "a"})
		}},
	}
}

// unreadyCases are the rules for pods that run and are not ready, and for those of which the UID is another.
func unreadyCases() []serverCase {
	never := count{expected: 2, desired: 2, healthy: 1}
	healthy := count{expected: 2, desired: 1, healthy: 1}
	return []serverCase{
		{"an unready pod passes a healthy budget and spends nothing", func(s server) {
			s.frozen("web", healthy)
			pod := s.webPod("a", Unready)
			s.wants("eviction", s.evict(pod), answer{})
			s.leaving(pod)
			s.has("web", healthy)
		}},
		{"an unready pod does not pass a budget that is not healthy", func(s server) {
			s.frozen("web", never)
			s.wants("eviction", s.evict(s.webPod("a", Unready)), budgetAnswer(0, "needs 2 healthy pods and has 1 currently"))
		}},
		{"an unready pod passes every budget with AlwaysAllow", func(s server) {
			s.frozen("web", never, AlwaysAllow)
			s.wants("eviction", s.evict(s.webPod("a", Unready)), answer{})
			s.has("web", never)
		}},
		{"an unready pod does not pass a budget that wants none healthy, but spends", func(s server) {
			s.frozen("web", count{expected: 1, allowed: 1})
			s.wants("eviction", s.evict(s.webPod("a", Unready)), answer{})
			s.has("web", count{expected: 1, disrupted: "a"})
			s.wants("second eviction", s.evict(s.webPod("b", Unready)), budgetAnswer(0, "needs 0 healthy pods and has 0"))
		}},
		{"an unready pod under two budgets is 500 all the same", func(s server) {
			s.frozen("one", healthy)
			s.frozen("two", healthy)
			s.wants("eviction", s.evict(s.webPod("a", Unready)), answer{code: 500, says: "more than one PodDisruptionBudget"})
		}},
		{"another UID of an unready pod that could pass is 429 with Retry-After, as if the budget were stale", func(s server) {
			s.frozen("web", healthy)
			pod := s.webPod("a", Unready)
			s.wants("eviction", s.evictStale(pod), budgetAnswer(10, "is still being processed"))
			s.untouched(pod)
		}},
		{"another UID of a pending pod is 409 after 10 s of tries", func(s server) {
			pod := s.webPod("a", InPhase(corev1.PodPending))
			start := time.Now()
			s.wants("eviction", s.evictStale(pod), podConflict())
			if took := time.Since(start); took < 9*time.Second || took > 20*time.Second {
				s.errorf("answer after %v, want about 10 s", took)
			}
			s.untouched(pod)
		}},
	}
}

// deletionCases are the rules by which pods end.
func deletionCases() []serverCase {
	return []serverCase{
		{"an eviction may shorten the grace period", func(s server) {
			pod := s.webPod("a", WithGrace(60))
			s.wants("eviction", s.Client().Evict(s.t.Context(), RefTo(pod), ptr.To[int64](5)), answer{})
			s.graceIs(pod, 5)
			s.wants("eviction with more", s.Client().Evict(s.t.Context(), RefTo(pod), ptr.To[int64](50)), answer{})
			s.graceIs(pod, 5)
			s.wants("eviction with less", s.Client().Evict(s.t.Context(), RefTo(pod), ptr.To[int64](2)), answer{})
			s.graceIs(pod, 2)
		}},
		{"a delete with another UID is 409", func(s server) {
			pod := s.webPod("a")
			ref := RefTo(pod)
			ref.UID = otherPodUID
			s.wants("delete", s.Client().Delete(s.t.Context(), ref, nil), podConflict())
			s.untouched(pod)
		}},
		{"a delete asks no budget", func(s server) {
			s.frozen("web", count{expected: 1, desired: 1, healthy: 1})
			pod := s.webPod("a")
			s.wants("delete", s.Client().Delete(s.t.Context(), RefTo(pod), nil), answer{})
			s.graceIs(pod, 30)
		}},
		{"a delete with grace 0 removes the pod at once", func(s server) {
			pod := s.webPod("a")
			s.wants("delete", s.Client().Delete(s.t.Context(), RefTo(pod), ptr.To[int64](0)), answer{})
			s.gone(pod)
			s.wants("second delete", s.Client().Delete(s.t.Context(), RefTo(pod), nil), answer{code: 404, reason: "NotFound", kind: "pods"})
		}},
		{"finalizers hold a pod that has ended", func(s server) {
			pod := s.webPod("a", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} })
			s.wants("eviction", s.evict(pod), answer{})
			s.Finish(s.t, pod)
			s.graceIs(pod, 0)
			s.wants("eviction of what is left", s.evict(pod), answer{})
			s.leaving(pod)
		}},
	}
}

func (s server) graceIs(pod *corev1.Pod, want int64) {
	s.t.Helper()
	if got := ptr.Deref(s.leaving(pod).DeletionGracePeriodSeconds, -1); got != want {
		s.errorf("grace period: got %d s, want %d s", got, want)
	}
}
