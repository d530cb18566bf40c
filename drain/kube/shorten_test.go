// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// A pod with a grace period of three days is evicted, and a step shortens what the server has: once, and only by UID.
func TestServerShortensARunningGracePeriod(t *testing.T) {
	const days = 3 * 24 * 3600
	c := newCluster(t)
	node := c.nodeWithPods(t)
	c.runs(t, "slow", node, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To(int64(days)) })
	d, err := kube.Open(t.Context(), c.env.Config(), kube.OpenOptions{Cache: kube.CacheOptions{Node: node}})
	must(t, err)
	defer d.Close()
	r := evictAll("shorten")
	r.Node = node
	r.Policy.Escalation = []drain.Escalation{{
		After: time.Second, Step: drain.StepDelete, GracePeriodSeconds: ptr.To(int64(20)),
	}}
	pods := c.admin.CoreV1().Pods(c.namespace)
	var seen []int64 // the grace periods that the server had, one after the other
	eventually(t, func() string {
		_, _, err := d.ReconcileRequest(t.Context(), r)
		must(t, err)
		pod, err := pods.Get(t.Context(), "slow", metav1.GetOptions{})
		must(t, err)
		grace := ptr.Deref(pod.DeletionGracePeriodSeconds, 0)
		if len(seen) == 0 || seen[len(seen)-1] != grace {
			seen = append(seen, grace)
		}
		if left := time.Until(pod.GetDeletionTimestamp().Time); grace != 20 || left > 20*time.Second {
			return fmt.Sprintf("a grace period of %d s, which ends in %s, want 20 s", grace, left)
		}
		return ""
	})
	if fmt.Sprint(seen) != fmt.Sprint([]int64{days, 20}) {
		t.Errorf("got the grace periods %v, want 3 days, then 20 s", seen)
	}
	before, err := pods.Get(t.Context(), "slow", metav1.GetOptions{})
	must(t, err)
	st, _, err := d.ReconcileRequest(t.Context(), r)
	must(t, err)
	if after, err := pods.Get(t.Context(), "slow", metav1.GetOptions{}); err != nil ||
		after.ResourceVersion != before.ResourceVersion || len(st.Forced) != 0 {
		t.Errorf("got resourceVersion %s after %s, forced %v, %v, want one deletion", after.ResourceVersion,
			before.ResourceVersion, st.Forced, err)
	}
	c.gone(t, "slow")
	eventually(t, func() string {
		st, _, err := d.ReconcileRequest(t.Context(), r)
		must(t, err)
		if st.Phase != drain.Drained || st.Outcome != drain.OutcomeDrained {
			return fmt.Sprintf("got %s %s, want it drained", st.Phase, st.Outcome)
		}
		return ""
	})
}
