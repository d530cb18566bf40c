// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// termination is how long a pod takes to end.
const termination = 500 * time.Millisecond

// A podView is a pod as the API server shows it.
type podView struct{ *corev1.Pod }

// isReady reports whether the pod serves: also while it ends.
func (p podView) isReady() bool {
	isReady := func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	return p.Status.Phase == corev1.PodRunning && slices.ContainsFunc(p.Status.Conditions, isReady)
}

// A view is what a cluster looks like at one time.
type view struct {
	cordoned bool // the node that is drained
	pods     []podView
	budgets  []policyv1.PodDisruptionBudget
}

func (c *cluster) readView(ctx context.Context) (view, error) {
	var v view
	node, err := c.client.CoreV1().Nodes().Get(ctx, c.node, metav1.GetOptions{})
	if err != nil {
		return v, fmt.Errorf("reading the node: %w", err)
	}
	v.cordoned = node.Spec.Unschedulable
	pods, err := c.client.CoreV1().Pods(c.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return v, fmt.Errorf("listing pods: %w", err)
	}
	for i := range pods.Items {
		v.pods = append(v.pods, podView{&pods.Items[i]})
	}
	budgets, err := c.client.PolicyV1().PodDisruptionBudgets(c.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return v, fmt.Errorf("listing budgets: %w", err)
	}
	v.budgets = budgets.Items
	return v, nil
}

// podNamed returns the pod of that name, and whether there is one.
func (v view) podNamed(name string) (podView, bool) {
	i := slices.IndexFunc(v.pods, func(p podView) bool { return p.Name == name })
	if i < 0 {
		return podView{}, false
	}
	return v.pods[i], true
}

// runningPods returns the pods that have not finished and that keep accepts.
func (v view) runningPods(keep func(podView) bool) (all []podView) {
	for _, p := range v.pods {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed && keep(p) {
			all = append(all, p)
		}
	}
	return all
}

// countReady counts the ready pods with the labels.
func (v view) countReady(set labels.Set) int {
	return len(v.runningPods(func(p podView) bool {
		return p.isReady() && set.AsSelector().Matches(labels.Set(p.Labels))
	}))
}

// findUnready names what is not ready yet.
func (v view) findUnready() string {
	for _, p := range v.pods {
		if !p.isReady() {
			return fmt.Sprintf("pod %q is not ready", p.Name)
		}
	}
	for _, b := range v.budgets {
		ready := v.countReady(b.Spec.Selector.MatchLabels)
		if b.Status.ObservedGeneration != b.Generation || int(b.Status.CurrentHealthy) != ready {
			return fmt.Sprintf("budget %q counts %d of %d ready pods", b.Name, b.Status.CurrentHealthy, ready)
		}
	}
	return ""
}

// playKubelets starts bound pods and ends deleted ones.
func (c *cluster) playKubelets(ctx context.Context, v view) error {
	for _, p := range v.pods {
		if err := c.playKubelet(ctx, p); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("playing the kubelet for pod %q: %w", p.Name, err)
		}
	}
	return nil
}

func (c *cluster) playKubelet(ctx context.Context, p podView) error {
	pods := c.client.CoreV1().Pods(c.ns)
	switch {
	case p.DeletionTimestamp != nil:
		end, known := c.ends[p.UID]
		if !known {
			c.ends[p.UID] = time.Now().Add(termination)
			return nil
		}
		if time.Now().Before(end) {
			return nil
		}
		return pods.Delete(ctx, p.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(p.UID)),
		})
	case p.Spec.NodeName == "" || p.Status.Phase != corev1.PodPending:
		return nil
	}
	pod := p.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.StartTime = ptr.To(metav1.Now())
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
	}
	_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// finishPod has a pod succeed, as one whose containers have ended.
func (c *cluster) finishPod(ctx context.Context, p podView) error {
	pod := p.DeepCopy()
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "PodCompleted", LastTransitionTime: metav1.Now(),
	}}
	_, err := c.client.CoreV1().Pods(c.ns).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}
