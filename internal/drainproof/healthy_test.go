// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

// TestNodeWithAnUnreadyPodIsLeftForLater puts a drain off for one of two pods, and lets it go on when that is ready. R-DR-05
// Fails when Preflight does not look at readiness, and when an unready pod fails the drain for good.
func TestNodeWithAnUnreadyPodIsLeftForLater(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.mustNode(t, "a", workRole).Name
	c.mustPod(t, "well", "plain", a)
	c.mustPod(t, "ill", "plain", a, func(p *corev1.Pod) { p.Labels[unreadyLabel] = "yes" })
	c.settled(t, 2)
	user := c.name + "-drainer"
	s := setOf(user, drain.Drain, a)
	s.Request.Policy.RequireHealthy = true
	run := start(t, mustConnect(t, c.asDrainer(t, user), nil), s)

	run.reconciled(t, "the drain is put off", putOff)
	c.looksAgain(t, run, a)
	for i, st := range run.all() {
		n := st.Nodes[0]
		if !putOff(st) || st.Done || len(n.Blockers) != 1 || n.Blockers[0].Name != "ill" || !strings.Contains(n.Message, c.namespace+"/ill") {
			t.Errorf("report %d is %s, want it put off for pod %q alone", i, inJSON(st), "ill")
		}
	}
	if events := audited(t, user); len(events) != 0 {
		t.Errorf("a drain that is put off has written:%s", describe(events))
	}
	if node := c.getNode(t, a); marked(node) || node.Spec.Unschedulable {
		t.Errorf("node %q has annotations %q and unschedulable %t, want it left alone", a, node.Annotations, node.Spec.Unschedulable)
	}

	well := time.Now()
	must(t, c.makeReady(t.Context(), "ill"))
	st, err := run.wait(t)
	must(t, err)
	if n := st.Nodes[0]; n.Phase != drain.Drained || n.Outcome != drain.OutcomeDrained || len(n.Evicted) != 2 {
		t.Errorf("got %s, want the node drained of both pods", inJSON(n))
	}
	for _, e := range audited(t, user) {
		if e.RequestReceivedTimestamp.Before(well) {
			t.Errorf("%s: is before the pod was ready, at %s", e, well)
		}
	}
}

// putOff reports whether the first node waits for a pod to become ready.
func putOff(s drain.SetStatus) bool {
	return len(s.Nodes) > 0 && s.Nodes[0].Phase == drain.Pending && s.Nodes[0].Reason == "PodUnhealthy" && s.Nodes[0].Outcome == ""
}

// touch changes a Node in a way that means nothing.
func (c *cluster) touch(ctx context.Context, node string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"drainproof/touched":%q}}}`, time.Now().Format(time.RFC3339Nano))
	_, err := c.api.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// looksAgain touches a Node, and waits until the drain has looked at it once more: its next report comes after a change only.
func (c *cluster) looksAgain(t *testing.T, run *running, node string) {
	t.Helper()
	for range 2 { // a pass that was under way may have begun before the change
		before := len(run.all())
		must(t, c.touch(t.Context(), node))
		eventually(t, "the drain looks again", func() error {
			if n := len(run.all()); n == before {
				return fmt.Errorf("there are %d reports as before", n)
			}
			return nil
		})
	}
}
