// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
)

// webPod creates a pod with the label app=web, on a node.
func (s server) webPod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	s.t.Helper()
	all := append([]func(*corev1.Pod){Labelled("web")}, changes...)
	return s.Pod(s.t, NewPod(s.ns, name, "fixture-node", all...))
}

func (s server) evict(pod *corev1.Pod) error {
	return s.Client().Evict(s.t.Context(), RefTo(pod), nil)
}

// evictStale asks for the eviction of a pod of that name that is not there any more.
func (s server) evictStale(pod *corev1.Pod) error {
	return s.Client().Evict(s.t.Context(), drain.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: otherPodUID}, nil)
}

func (s server) untouched(pod *corev1.Pod) {
	s.t.Helper()
	now := s.GetPod(s.t, pod.Namespace, pod.Name)
	if now == nil || now.DeletionTimestamp != nil || now.ResourceVersion != pod.ResourceVersion {
		s.errorf("pod %s: got it changed (%+v), want it left as it was", pod.Name, now)
	}
}

func (s server) leaving(pod *corev1.Pod) *corev1.Pod {
	s.t.Helper()
	now := s.GetPod(s.t, pod.Namespace, pod.Name)
	if now == nil || now.DeletionTimestamp == nil {
		s.t.Fatalf("rule %q: pod %s: got it not being deleted (%+v), want a deletion timestamp", s.rule, pod.Name, now)
	}
	return now
}

func (s server) gone(pod *corev1.Pod) {
	s.t.Helper()
	if now := s.GetPod(s.t, pod.Namespace, pod.Name); now != nil {
		s.errorf("pod %s: got it still there, deletion timestamp %v, want it gone", pod.Name, now.DeletionTimestamp)
	}
}

func evictionCases() []serverCase {
	return []serverCase{
		{"a pod that is not there is 404", func(s server) {
			err := s.Client().Evict(s.t.Context(), drain.PodRef{Namespace: s.ns, Name: "none", UID: otherPodUID}, nil)
			s.wants("eviction", err, answer{code: 404, reason: metav1.StatusReasonNotFound, kind: "pods", says: `pods "none" not found`})
		}},
		{"without a budget the pod goes, with the condition DisruptionTarget and its own grace period", evictsWithoutBudget},
		{"another UID without a budget is 409 on the Pod", func(s server) {
			pod := s.webPod("a")
			s.wants("eviction", s.evictStale(pod), podConflict())
			s.untouched(pod)
		}},
		{"a budget that allows none is 429 with its numbers and no Retry-After", func(s server) {
			s.frozen("web", count{expected: 2, desired: 2, healthy: 2})
			pod := s.webPod("a")
			s.wants("eviction", s.evict(pod), budgetAnswer(0, "The disruption budget web needs 2 healthy pods and has 2 currently"))
			s.untouched(pod)
		}},
		{"a budget whose status is older than its spec is 429 with Retry-After 10", func(s server) {
			s.frozen("web", count{expected: 2, desired: 1, healthy: 2, allowed: 1})
			s.ChangeBudget(s.t, s.ns, "web", func(spec *policyv1.PodDisruptionBudgetSpec) { spec.MinAvailable.IntVal = 0 })
			pod := s.webPod("a")
			s.wants("eviction", s.evict(pod), budgetAnswer(10, "The disruption budget web is still being processed by the server."))
			s.untouched(pod)
			s.has("web", count{expected: 2, desired: 1, healthy: 2, allowed: 1})
		}},
		{"an accepted eviction spends one unit, kept by the pod's name", func(s server) {
			s.frozen("web", count{expected: 3, desired: 1, healthy: 3, allowed: 2})
			s.wants("eviction", s.evict(s.webPod("a")), answer{})
			s.has("web", count{expected: 3, desired: 1, healthy: 3, allowed: 1, disrupted: "a"})
		}},
		{"another UID with none allowed is 429, not 409", func(s server) {
			s.frozen("web", count{expected: 2, desired: 2, healthy: 2})
			s.wants("eviction", s.evictStale(s.webPod("a")), budgetAnswer(0, "needs 2 healthy pods"))
		}},
		{"another UID with one allowed is 409, and the unit is spent", func(s server) {
			s.frozen("web", count{expected: 2, desired: 1, healthy: 2, allowed: 1})
			pod := s.webPod("a")
			s.wants("eviction", s.evictStale(pod), podConflict())
			s.untouched(pod)
			s.has("web", count{expected: 2, desired: 1, healthy: 2, disrupted: "a"})
		}},
	}
}

// oddCases are the answers of budgets that are not simply open or closed.
func oddCases() []serverCase {
	return []serverCase{
		{"two budgets are 500 without a reason, and none is spent", func(s server) {
			s.frozen("one", count{expected: 2, desired: 1, healthy: 2, allowed: 1})
			s.frozen("two", count{expected: 2, desired: 1, healthy: 2, allowed: 1})
			pod := s.webPod("a")
			s.wants("eviction", s.evict(pod), answer{code: 500, says: "This pod has more than one PodDisruptionBudget"})
			s.untouched(pod)
			s.has("one", count{expected: 2, desired: 1, healthy: 2, allowed: 1})
		}},
		{"a namespace that is being deleted is 403 with the cause NamespaceTerminating", func(s server) {
			pod := s.webPod("a")
			s.TerminateNamespace(s.t, s.ns)
			s.wants("eviction", s.evict(pod), answer{
				code: 403, reason: metav1.StatusReasonForbidden, kind: "pods", cause: corev1.NamespaceTerminatingCause, says: "is being terminated",
			})
			s.untouched(pod)
		}},
		{"a budget that failed to sync says so", func(s server) {
			s.frozen("web", count{expected: 2, desired: 1, healthy: 2})
			s.SetBudgetStatus(s.t, s.ns, "web", func(st *policyv1.PodDisruptionBudgetStatus) {
				st.Conditions[0].Reason, st.Conditions[0].Message = policyv1.SyncFailedReason, "found no controllers"
			})
			want := budgetAnswer(0, "because it failed sync: found no controllers")
			want.saysOlder = "needs 1 healthy pods and has 2 currently"
			s.wants("eviction", s.evict(s.webPod("a")), want)
		}},
		{"a budget that allows none although more are healthy than it needs says only that", func(s server) {
			s.frozen("web", count{expected: 2, desired: 1, healthy: 2})
			want := budgetAnswer(0, "does not allow evicting pods currently")
			want.saysOlder = "needs 1 healthy pods and has 2 currently"
			s.wants("eviction", s.evict(s.webPod("a")), want)
		}},
		{"a dry run answers as the eviction would and changes nothing", dryRunChangesNothing},
		{"a budget without a selector protects nothing, one with an empty selector everything", selectorsMatch},
	}
}

func evictsWithoutBudget(s server) {
	pod := s.webPod("a", WithGrace(17))
	before := time.Now()
	s.wants("eviction", s.evict(pod), answer{})
	now := s.leaving(pod)
	if got := ptr.Deref(now.DeletionGracePeriodSeconds, -1); got != 17 {
		s.errorf("grace period: got %d s, want the pod's 17 s", got)
	}
	if left := now.DeletionTimestamp.Sub(before); left < 15*time.Second || left > 25*time.Second {
		s.errorf("deletion timestamp: got %v after the request, want the 17 s of the grace period", left)
	}
	for _, cond := range now.Status.Conditions {
		if cond.Type == corev1.DisruptionTarget && cond.Status == corev1.ConditionTrue && cond.Reason == "EvictionByEvictionAPI" {
			return
		}
	}
	s.errorf("conditions: got %+v, want DisruptionTarget by EvictionByEvictionAPI", now.Status.Conditions)
}

func dryRunChangesNothing(s server) {
	s.frozen("web", count{expected: 2, desired: 1, healthy: 2, allowed: 1})
	a, b := s.webPod("a"), s.webPod("b")
	for _, pod := range []*corev1.Pod{a, b, a} {
		s.wants("dry run", s.DryRun(s.t.Context(), RefTo(pod)), answer{})
	}
	s.wants("dry run with another UID", s.DryRun(s.t.Context(), drain.PodRef{Namespace: s.ns, Name: "a", UID: otherPodUID}), podConflict())
	s.untouched(a)
	s.has("web", count{expected: 2, desired: 1, healthy: 2, allowed: 1})
	s.SetBudgetStatus(s.t, s.ns, "web", func(st *policyv1.PodDisruptionBudgetStatus) { st.DisruptionsAllowed, st.CurrentHealthy = 0, 1 })
	s.wants("dry run with none allowed", s.DryRun(s.t.Context(), RefTo(a)), budgetAnswer(0, "needs 1 healthy pods and has 1"))
}

func selectorsMatch(s server) {
	s.frozen("none", count{expected: 1, desired: 1, healthy: 1}, func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = nil })
	s.wants("eviction under a budget without a selector", s.evict(s.webPod("a")), answer{})
	s.frozen("all", count{expected: 1, desired: 1, healthy: 1}, func(b *policyv1.PodDisruptionBudget) {
		b.Spec.Selector = &metav1.LabelSelector{}
	})
	s.wants("eviction under a budget with an empty selector", s.evict(s.webPod("b")), budgetAnswer(0, "budget all needs 1"))
}
