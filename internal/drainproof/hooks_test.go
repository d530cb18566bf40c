// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// TestPodsAnswerTheirHooks drains a node on which pods say that they are done, decline, say nothing, and are still at it. R-DR-15
// Fails when hooks are not asked, when an answer is not read, when a decline counts as none, and when silence has no end.
func TestPodsAnswerTheirHooks(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.mustNode(t, "a", workRole).Name
	pods := map[types.UID]string{}
	for pod, silence := range map[string]string{"done": "1h", "declined": "1h", "silent": "2s", "working": "1h"} {
		uid := c.mustPod(t, pod, "plain", a, hooked, func(p *corev1.Pod) { p.Annotations["drain.belay.dev/deadline"] = silence }).UID
		pods[uid] = pod
	}
	c.settled(t, len(pods))
	user := c.name + "-drainer"
	run := start(t, mustConnect(t, c.asDrainer(t, user), withEverything), setOf(user, drain.Drain, a))

	answered := map[string]time.Time{}
	for pod, progress := range map[string]drain.HookProgress{"done": drain.HookDone, "declined": drain.HookDeclined, "working": drain.HookWorking} {
		must(t, c.asked(t.Context(), pod))
		answered[pod] = time.Now()
		must(t, c.answer(t.Context(), pod, progress))
	}
	run.reconciled(t, "all but one leave", func(s drain.SetStatus) bool { return len(s.Nodes) == 1 && s.Nodes[0].Counts.Remaining == 1 })
	n := run.last().Nodes[0]
	if b := n.Blockers[0]; b.Name != "working" || b.Reason != "WaitingForHook" {
		t.Errorf("got %s, want only pod %q waited for", inJSON(n), "working")
	}
	answered["silent"] = n.Started.Add(2 * time.Second) // it was asked later than that the drain has begun
	all, accepted := evictions(t, audited(t, user))
	if len(all) != 3 || len(accepted) != 3 {
		t.Errorf("%d evictions were asked for and %d accepted, want 3 and 3:%s", len(all), len(accepted), describe(all))
	}
	for _, e := range all {
		uid, err := e.target()
		must(t, err)
		if at, ok := answered[pods[uid]]; !ok || e.RequestReceivedTimestamp.Before(at) {
			t.Errorf("%s: pod %q is evicted before %s", e, pods[uid], at)
		}
	}
	run.cancel()
	<-run.ended
	if got := c.annotationsOf(t, "working")[kube.RequestAnnotation]; got != "" {
		t.Errorf("after the end of the drain, pod %q is still asked to leave: %s", "working", got)
	}
}

// asked waits until a pod is asked to evacuate.
func (c *cluster) asked(ctx context.Context, pod string) error {
	return until(ctx, func() error {
		p, err := c.api.CoreV1().Pods(c.namespace).Get(ctx, pod, metav1.GetOptions{})
		if err == nil && p.Annotations[kube.RequestAnnotation] == "" {
			err = fmt.Errorf("pod %q has annotations %q, want a request", pod, p.Annotations)
		}
		return err
	})
}

// answer lets a pod say how far it is.
func (c *cluster) answer(ctx context.Context, pod string, progress drain.HookProgress) error {
	says, err := json.Marshal(map[string]string{"responder": "migrate", "progress": string(progress), "beat": "1"})
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"drain.belay.dev/evacuation": string(says)}}})
	if err != nil {
		return err
	}
	_, err = c.api.CoreV1().Pods(c.namespace).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (c *cluster) annotationsOf(t *testing.T, pod string) map[string]string {
	t.Helper()
	p, err := c.api.CoreV1().Pods(c.namespace).Get(t.Context(), pod, metav1.GetOptions{})
	must(t, err)
	return p.Annotations
}
