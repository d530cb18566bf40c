// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/internal/testenv/nodetier"
	"github.com/belayproject/belay/internal/tier"
)

// TestRealNodeJudgesConfigs shows on real components that a config is judged by what becomes of the node, while the
// kubelet's healthz answers all the time: one that suits the node is promoted; one that refuses pods that ran before,
// and one that puts the node under pressure, are left; and no config is promoted, or left, while the container
// runtime is dead. R-CS-46, L-CS-34.
func TestRealNodeJudgesConfigs(t *testing.T) {
	tier.System(t, tier.Root, tier.Kubelet)
	n := newNode(t)
	good := map[string]any{"maxPods": 11, "evictionPressureTransitionPeriod": "1s"}
	v1 := n.push("v1", "10s", good)
	n.promoted(v1)
	with := func(more map[string]any) map[string]any {
		fields := maps.Clone(good)
		maps.Copy(fields, more)
		return fields
	}

	n.runPods("first")
	n.expectLeft(n.push("maxpods", "10s", with(map[string]any{"maxPods": 1})), good, "pods", "has failed: OutOfpods")

	n.runPods("second")
	started := time.Now()
	next := n.push("next", "30s", with(map[string]any{"maxPods": 12}))
	n.until("the start with next", func() error { return n.answers(with(map[string]any{"maxPods": 12})) })
	must(t, n.tier.Containerd().Kill())
	n.until("the word of the probe", func() error {
		return n.isFailingWith("runtime: the container runtime does not answer at " + n.tier.Endpoint())
	})
	n.until("the end of what the trial lasts, and of what a probe may fail", func() error {
		if lasted := time.Since(started); lasted < 90*time.Second {
			return fmt.Errorf("%s have passed", lasted)
		}
		return nil
	})
	s, err := n.status()
	must(t, err)
	if s.LastKnownGood.ConfigMapRef.UID != string(v1.UID) || s.Assigned.ConfigMapRef.UID != string(next.UID) ||
		len(s.Rejected) > 1 || s.Trial == nil {
		t.Errorf("while the runtime is dead the status is %+v, want neither a promotion nor a rejection of %s", s, next.UID)
	}
	must(t, n.rendered(with(map[string]any{"maxPods": 12})))
	must(t, n.tier.Containerd().Start(t.Context()))
	n.promoted(next)

	n.runPods("third")
	good = with(map[string]any{"maxPods": 12})
	pressed := with(map[string]any{"evictionHard": map[string]string{"memory.available": "99%"}})
	n.expectLeft(n.push("pressure", "10s", pressed), good, "node-ready", "condition MemoryPressure of the node is True")
}

// expectLeft waits until the node has left cm for the config with these fields, because of a probe that has said what
// is wanted.
func (n *node) expectLeft(cm *corev1.ConfigMap, good map[string]any, probe, says string) {
	n.t.Helper()
	n.until("what the probes say of "+cm.Name, func() error { return n.isFailingWith(says) })
	n.until("the rollback from "+cm.Name, func() error { return n.answers(good) })
	n.until("the reason", func() error {
		c, err := n.condition("ConfigOK")
		if err != nil {
			return err
		}
		if c.Status != corev1.ConditionFalse || !strings.Contains(c.Reason, string(cm.UID)) || !strings.Contains(c.Reason,
			fmt.Sprintf("required probe %q", probe)) {
			return fmt.Errorf("ConfigOK is %s: %s, want False with %s and probe %q", c.Status, c.Reason, cm.UID, probe)
		}
		return nil
	})
}

// isFailingWith checks that one of the probes that fail now says so.
func (n *node) isFailingWith(says string) error {
	s, err := n.status()
	if err != nil {
		return err
	}
	if s.Trial == nil {
		return errors.New("there is no trial")
	}
	if !strings.Contains(strings.Join(s.Trial.Failing, "\n"), says) {
		return fmt.Errorf("the probes say %q, want %q", s.Trial.Failing, says)
	}
	return nil
}

// hasRoom waits until the Node says that three pods fit on it. A kubelet that has just started judges pods by what the
// one before it has written there: it would fail pods for good that are bound to the node earlier.
func (n *node) hasRoom() {
	n.t.Helper()
	n.until("room for three pods on the Node", func() error {
		got, err := n.client.CoreV1().Nodes().Get(n.t.Context(), n.kube.Name, metav1.GetOptions{})
		if err == nil && got.Status.Allocatable.Pods().Value() < 3 {
			err = fmt.Errorf("the Node has room for %s", got.Status.Allocatable.Pods())
		}
		return err
	})
}

// runPods replaces the pods of the node by three that run, and waits until they are ready.
func (n *node) runPods(name string) {
	n.t.Helper()
	n.hasRoom()
	const space = metav1.NamespaceDefault
	pods := n.client.CoreV1().Pods(space)
	_, err := n.client.CoreV1().ServiceAccounts(space).Get(n.t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		_, err = n.client.CoreV1().ServiceAccounts(space).Create(n.t.Context(),
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	}
	must(n.t, err)
	must(n.t, pods.DeleteCollection(n.t.Context(), metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))},
		metav1.ListOptions{}))
	for i := range 3 {
		_, err := pods.Create(n.t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i)},
			Spec: corev1.PodSpec{
				NodeName: n.kube.Name, AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
				Containers: []corev1.Container{{Name: "pause", Image: nodetier.PauseImage, ImagePullPolicy: corev1.PullNever}},
			},
		}, metav1.CreateOptions{})
		must(n.t, err)
	}
	n.until("three pods that run", func() error {
		list, err := pods.List(n.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for _, pod := range list.Items {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
					ready++
				}
			}
		}
		if ready != 3 {
			return fmt.Errorf("%d pods are ready, want 3", ready)
		}
		return nil
	})
}
