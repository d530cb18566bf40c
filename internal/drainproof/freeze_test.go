// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

// TestCrashLoopOnAReturnedNodeStopsTheFleet gives a node back on which a pod then crashes, and wants the next node. Neither a cured pod
// nor a new process goes on with that, Resume does. The nodes of another holder are not concerned. R-DR-06
// Fails when the watch does not look for crash loops, when the freeze is kept in memory alone, and when a drain begins in a frozen fleet.
func TestCrashLoopOnAReturnedNodeStopsTheFleet(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b, other := c.mustNode(t, "a", workRole).Name, c.mustNode(t, "b", workRole).Name, c.mustNode(t, "other", workRole).Name
	c.mustPod(t, "before", "plain", a)
	c.mustPod(t, "next", "plain", b)
	c.mustPod(t, "others", "plain", other)
	c.settled(t, 3)
	user := c.name + "-drainer"
	config := c.asDrainer(t, user)
	d := mustConnect(t, config, nil)
	maintain(t, d, setOf(user, drain.Drain, a), drain.Drained)
	c.returnsBad(t, d, setOf(user, drain.Release, a))

	run := start(t, d, setOf(user, drain.Drain, b))
	frozen := func(s drain.SetStatus) bool { return s.Reason == drain.Frozen && c.frozenBy(s.Nodes[0], a) }
	run.reconciled(t, "the next node waits", frozen)
	must(t, c.reportContainers(t.Context(), "back"))
	c.looksAgain(t, run, b)
	run.cancel()
	<-run.ended
	d = mustConnect(t, config, nil)
	run = start(t, d, setOf(user, drain.Drain, b))
	run.reconciled(t, "a new process waits too", frozen)
	c.looksAgain(t, run, b)
	if st := run.last(); !frozen(st) {
		t.Errorf("got %s, want the fleet frozen by node %q", inJSON(st), a)
	}
	maintain(t, d, setOf(user+"-2", drain.Drain, other), drain.Drained)

	resumed := time.Now()
	must(t, d.Resume(t.Context(), user))
	st, err := run.wait(t)
	must(t, err)
	if n := st.Nodes[0]; n.Phase != drain.Drained || n.Outcome != drain.OutcomeDrained {
		t.Errorf("after Resume got %s, want the node drained", inJSON(n))
	}
	for _, e := range audited(t, user) {
		if e.isNodeWrite() && e.ObjectRef.Name == b && e.RequestReceivedTimestamp.Before(resumed) {
			t.Errorf("%s: comes before Resume, at %s", e, resumed)
		}
	}
	if marked(c.getNode(t, a)) {
		t.Errorf("node %q has its mark still", a)
	}
}

// returnsBad gives the first node of a set back, and lets a pod crash there while it is watched.
func (c *cluster) returnsBad(t *testing.T, d *drain.Drainer, s drain.Set) {
	t.Helper()
	s.Request.Policy.Soak = 10 * time.Minute
	run := start(t, d, s)
	run.reconciled(t, "the node is watched after its return", func(s drain.SetStatus) bool {
		return len(s.Nodes) == 1 && s.Nodes[0].Phase == drain.Soak && s.Nodes[0].Reason == "Soaking"
	})
	c.mustPod(t, "back", "plain", s.Groups[0][0])
	c.settled(t, 3)
	must(t, c.reportContainers(t.Context(), "back", corev1.ContainerStatus{
		Name: "main", RestartCount: 1, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
	}))
	st, err := run.wait(t)
	must(t, err)
	if n := st.Nodes[0]; n.Phase != drain.Soak || n.Reason != drain.Frozen || !strings.Contains(n.Message, c.namespace+"/back") {
		t.Fatalf("got %s, want it frozen for pod %q", inJSON(n), "back")
	}
}

// frozenBy reports whether a node waits for the freeze, with the whole reason.
func (c *cluster) frozenBy(n drain.Status, bad string) bool {
	said := strings.Contains(n.Message, bad) && strings.Contains(n.Message, c.namespace+"/back") && strings.Contains(n.Message, "CrashLoopBackOff")
	return n.Phase == drain.Pending && n.Reason == drain.Frozen && said
}

// reportContainers sets what a kubelet says of a pod's containers.
func (c *cluster) reportContainers(ctx context.Context, pod string, statuses ...corev1.ContainerStatus) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"containerStatuses": statuses}})
	if err == nil {
		_, err = c.api.CoreV1().Pods(c.namespace).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	return err
}
