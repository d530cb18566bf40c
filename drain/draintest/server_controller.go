// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replicas creates pods of an owner with that scale, the first of them ready.
func (s server) replicas(kind string, scale int32, pods, ready int) []*corev1.Pod {
	s.t.Helper()
	uid := s.Owner(s.t, kind, s.ns, "web", scale)
	out := make([]*corev1.Pod, pods)
	for i := range out {
		changes := []func(*corev1.Pod){OwnedBy(kind, "web", uid)}
		if i >= ready {
			changes = append(changes, Unready)
		}
		out[i] = s.webPod(fmt.Sprintf("web-%d", i), changes...)
	}
	return out
}

// arithmetic is the table of what a budget makes of pods.
func arithmetic() []serverCase {
	type budget func(string, string, string, map[string]string, ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget
	var cases []serverCase
	for _, c := range []struct {
		rule        string
		budget      budget
		n           string
		scale       int32
		pods, ready int
		want        count
	}{
		{"a number of minAvailable expects the pods that are there", MinAvailable, "2", 5, 3, 3, count{expected: 3, desired: 2, healthy: 3, allowed: 1}},
		{"a percent of minAvailable is of the owner's scale, rounded up", MinAvailable, "50%", 5, 4, 4, count{expected: 5, desired: 3, healthy: 4, allowed: 1}},
		{"100 % of minAvailable never allows", MinAvailable, "100%", 3, 3, 3, count{expected: 3, desired: 3, healthy: 3}},
		{"a number of maxUnavailable is taken from the owner's scale", MaxUnavailable, "2", 5, 4, 4, count{expected: 5, desired: 3, healthy: 4, allowed: 1}},
		{"a percent of maxUnavailable is rounded up", MaxUnavailable, "30%", 4, 4, 4, count{expected: 4, desired: 2, healthy: 4, allowed: 2}},
		{"maxUnavailable beyond the scale wants none healthy", MaxUnavailable, "9", 3, 3, 2, count{expected: 3, desired: 0, healthy: 2, allowed: 2}},
		{"maxUnavailable 0 never allows", MaxUnavailable, "0", 2, 2, 2, count{expected: 2, desired: 2, healthy: 2}},
		{"pods that are not ready are not healthy, and allowed is never negative", MinAvailable, "3", 4, 4, 1, count{expected: 4, desired: 3, healthy: 1}},
		{"a budget without pods allows none", MinAvailable, "0", 3, 0, 0, count{}},
		{"a budget with maxUnavailable and without pods expects none", MaxUnavailable, "1", 3, 0, 0, count{}},
	} {
		cases = append(cases, serverCase{c.rule, func(s server) {
			s.replicas(ReplicaSet, c.scale, c.pods, c.ready)
			s.Budget(s.t, c.budget(s.ns, "web", c.n, web()))
			s.counts("web", c.want)
		}})
	}
	return cases
}

// controllerCases are the rules by which the disruption controller counts.
func controllerCases() []serverCase {
	return append(arithmetic(), []serverCase{
		{"the scale of a StatefulSet counts as that of a ReplicaSet", func(s server) {
			s.replicas(StatefulSet, 4, 3, 3)
			s.Budget(s.t, MaxUnavailable(s.ns, "web", "2", web()))
			s.counts("web", count{expected: 4, desired: 2, healthy: 3, allowed: 1})
		}},
		{"pods without an owner count for nothing in a scale", func(s server) {
			s.webPod("a")
			s.Budget(s.t, MaxUnavailable(s.ns, "web", "1", web()))
			s.counts("web", count{healthy: 1})
		}},
		{"pods without an owner count for a number of minAvailable", func(s server) {
			s.webPod("a")
			s.webPod("b", InPhase(corev1.PodSucceeded))
			s.webPod("c", InPhase(corev1.PodPending))
			s.Budget(s.t, MinAvailable(s.ns, "web", "0", web()))
			s.counts("web", count{expected: 3, healthy: 1, allowed: 1})
		}},
		{"an owner that is not there fails the budget, which then allows none", ownerMissing},
		{"a change of the spec is counted anew, and observed", func(s server) {
			s.replicas(ReplicaSet, 3, 3, 3)
			s.Budget(s.t, MinAvailable(s.ns, "web", "2", web()))
			s.counts("web", count{expected: 3, desired: 2, healthy: 3, allowed: 1})
			s.ChangeBudget(s.t, s.ns, "web", func(spec *policyv1.PodDisruptionBudgetSpec) { spec.MinAvailable.IntVal = 1 })
			s.counts("web", count{expected: 3, desired: 1, healthy: 3, allowed: 2})
		}},
		{"a pod that turns unready takes its unit along, and brings it back", func(s server) {
			pods := s.replicas(ReplicaSet, 3, 3, 3)
			s.Budget(s.t, MinAvailable(s.ns, "web", "1", web()))
			s.SetStatus(s.t, pods[0], corev1.PodRunning, false)
			s.counts("web", count{expected: 3, desired: 1, healthy: 2, allowed: 1})
			s.SetStatus(s.t, pods[0], corev1.PodRunning, true)
			s.counts("web", count{expected: 3, desired: 1, healthy: 3, allowed: 2})
		}},
		{"an evicted pod stays expected and is not healthy until it is gone", func(s server) {
			pods := s.replicas(ReplicaSet, 3, 3, 3)
			s.Budget(s.t, MinAvailable(s.ns, "web", "1", web()))
			s.counts("web", count{expected: 3, desired: 1, healthy: 3, allowed: 2})
			s.wants("eviction", s.evict(pods[0]), answer{})
			s.counts("web", count{expected: 3, desired: 1, healthy: 2, allowed: 1})
			s.Finish(s.t, pods[0])
			s.counts("web", count{expected: 2, desired: 1, healthy: 2, allowed: 1})
		}},
		{"an accepted eviction whose pod stays keeps its unit for 2 min, by name", unconfirmed},
		{"an entry of a pod that is gone is dropped", func(s server) {
			s.frozen("web", count{expected: 1, desired: 1, healthy: 1})
			s.webPod("a")
			s.disrupt("nobody", time.Now())
			s.Controller(s.t, true)
			s.counts("web", count{expected: 1, desired: 1, healthy: 1})
		}},
	}...)
}

func ownerMissing(s server) {
	s.webPod("a", OwnedBy(ReplicaSet, "gone", otherPodUID))
	s.Budget(s.t, MaxUnavailable(s.ns, "web", "1", web()))
	s.eventually("condition", func() error {
		st := s.GetBudget(s.t, s.ns, "web").Status
		cond := meta.FindStatusCondition(st.Conditions, policyv1.DisruptionAllowedCondition)
		if cond == nil || cond.Reason != policyv1.SyncFailedReason || st.DisruptionsAllowed != 0 {
			return fmt.Errorf("got %+v, want SyncFailed and none allowed", st)
		}
		return nil
	})
}

// disrupt writes an entry into the budget as an eviction at that time would have.
func (s server) disrupt(pod string, at time.Time) {
	s.t.Helper()
	s.SetBudgetStatus(s.t, s.ns, "web", func(st *policyv1.PodDisruptionBudgetStatus) {
		if st.DisruptedPods == nil {
			st.DisruptedPods = map[string]metav1.Time{}
		}
		st.DisruptedPods[pod] = stamp(at)
	})
}

func unconfirmed(s server) {
	// The controller has seen the pods before: one that has not would drop the entries, as of pods that are gone.
	s.webPod("young")
	s.webPod("old")
	s.Budget(s.t, MinAvailable(s.ns, "web", "1", web()))
	s.counts("web", count{expected: 2, desired: 1, healthy: 2, allowed: 1})
	s.Controller(s.t, false)
	s.disrupt("young", time.Now())
	s.disrupt("old", time.Now().Add(-2*time.Minute+20*time.Second)) // that long a slow controller may take to see both, once it goes on
	s.Controller(s.t, true)
	s.counts("web", count{expected: 2, desired: 1, healthy: 0, disrupted: "old,young"})
	s.counts("web", count{expected: 2, desired: 1, healthy: 1, disrupted: "young"})
}

// patchCases are the rules of a guarded write to a Node.
func patchCases() []serverCase {
	conflict := answer{code: 409, reason: metav1.StatusReasonConflict, kind: "nodes", says: "please apply your changes to the latest version"}
	return []serverCase{
		{"a patch of a Node that is not there is 404", func(s server) {
			_, err := s.Client().PatchNode(s.t.Context(), "no-such-node", []byte(`{"spec":{"unschedulable":true}}`), false)
			s.wants("patch", err, answer{code: 404, reason: metav1.StatusReasonNotFound, kind: "nodes"})
		}},
		{"a patch with the Node's resourceVersion is written, one with an older is 409", func(s server) {
			node := s.Node(s.t, s.ns+"-a")
			patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"annotations":{"a":"1"}},"spec":{"unschedulable":true}}`, node.ResourceVersion)
			got, err := s.Client().PatchNode(s.t.Context(), node.Name, patch, false)
			s.wants("patch", err, answer{})
			if got != nil && (!got.Spec.Unschedulable || got.Annotations["a"] != "1" || got.ResourceVersion == node.ResourceVersion) {
				s.errorf("patched node: got %+v, want it cordoned and annotated, with a new resourceVersion", got)
			}
			_, err = s.Client().PatchNode(s.t.Context(), node.Name, patch, false)
			s.wants("second patch", err, conflict)
		}},
		{"a patch with the UID of another Node is 422, and 409 where it has another resourceVersion too", func(s server) {
			node := s.Node(s.t, s.ns+"-a")
			_, err := s.Client().PatchNode(s.t.Context(), node.Name, fmt.Appendf(nil, `{"metadata":{"uid":%q}}`, otherPodUID), false)
			s.wants("patch", err, answer{
				code: 422, reason: metav1.StatusReasonInvalid, kind: "Node", cause: metav1.CauseTypeFieldValueInvalid, says: "field is immutable",
			})
			_, err = s.Client().PatchNode(s.t.Context(), node.Name, fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":"1"}}`, otherPodUID), false)
			s.wants("patch with another resourceVersion", err, conflict)
		}},
		{"null removes an annotation, a list is replaced, and what changes nothing writes nothing", patchMerges},
		{"a patch of the status leaves the spec alone, and the other way round", func(s server) {
			node := s.Node(s.t, s.ns+"-a")
			patch := []byte(`{"spec":{"unschedulable":true},"status":{"phase":"Running"}}`)
			got, err := s.Client().PatchNode(s.t.Context(), node.Name, patch, true)
			s.wants("patch of the status", err, answer{})
			if got != nil && (got.Spec.Unschedulable || got.Status.Phase != corev1.NodeRunning) {
				s.errorf("patched status: got unschedulable %v and phase %q, want the phase alone", got.Spec.Unschedulable, got.Status.Phase)
			}
			got, err = s.Client().PatchNode(s.t.Context(), node.Name, []byte(`{"spec":{"unschedulable":true},"status":{"phase":"Pending"}}`), false)
			s.wants("patch of the spec", err, answer{})
			if got != nil && (!got.Spec.Unschedulable || got.Status.Phase != corev1.NodeRunning) {
				s.errorf("patched spec: got unschedulable %v and phase %q, want the spec alone", got.Spec.Unschedulable, got.Status.Phase)
			}
		}},
		{"a list of pods shows what was bound before", func(s server) {
			s.Pod(s.t, NewPod(s.ns, "a", s.ns+"-node"))
			s.Pod(s.t, NewPod(s.ns, "b", s.ns+"-other"))
			pods, err := s.Client().ListPods(s.t.Context(), s.ns+"-node")
			s.wants("list", err, answer{})
			if len(pods) != 1 || pods[0].Name != "a" {
				s.errorf("list: got %d pods, want a alone", len(pods))
			}
		}},
	}
}

func patchMerges(s server) {
	node := s.Node(s.t, s.ns+"-a")
	for _, step := range []struct {
		patch  string
		taints int
	}{
		{`{"metadata":{"annotations":{"a":"1","b":"2"}},"spec":{"taints":[{"key":"x","effect":"NoSchedule"},{"key":"y","effect":"NoSchedule"}]}}`, 2},
		{`{"metadata":{"annotations":{"a":null}},"spec":{"taints":[{"key":"z","effect":"PreferNoSchedule"}]}}`, 1},
	} {
		got, err := s.Client().PatchNode(s.t.Context(), node.Name, []byte(step.patch), false)
		s.wants("patch", err, answer{})
		if err != nil {
			return
		}
		if len(got.Spec.Taints) != step.taints {
			s.errorf("taints: got %+v, want %d", got.Spec.Taints, step.taints)
		}
		node = got
	}
	if _, still := node.Annotations["a"]; still || node.Annotations["b"] != "2" {
		s.errorf("annotations: got %v, want b alone", node.Annotations)
	}
	got, err := s.Client().PatchNode(s.t.Context(), node.Name, []byte(`{"metadata":{"annotations":{"b":"2"}}}`), false)
	s.wants("patch that changes nothing", err, answer{})
	if got != nil && got.ResourceVersion != node.ResourceVersion {
		s.errorf("resourceVersion: got %s, want %s as before", got.ResourceVersion, node.ResourceVersion)
	}
}
