// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"
	"maps"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
)

// deletionTimeout is how long the disruption controller believes that an accepted eviction will delete its pod.
const deletionTimeout = 2 * time.Minute

// PauseBudgets stops the disruption controller, or lets it go on: meanwhile budgets keep the status that they have, and what evictions
// take from it.
func (c *Cluster) PauseBudgets(pause bool) {
	c.lock()
	defer c.unlock()
	c.budgetsPaused = pause
	if pause {
		return
	}
	for key := range c.budgets.live {
		c.enqueueBudget(key)
	}
}

func (c *Cluster) putBudget(b *policyv1.PodDisruptionBudget) {
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	put(c, &c.budgets, key, b, drain.Change{Budget: key})
	c.enqueueBudget(key)
}

func (c *Cluster) enqueueBudget(key types.NamespacedName) {
	c.enqueue("budget "+key.String(), c.o.BudgetLag, func() { c.syncBudget(key) })
}

// budgetsFollow has the budgets that match a pod computed again.
func (c *Cluster) budgetsFollow(pod *corev1.Pod) {
	for _, b := range c.budgetsOf(pod) {
		c.enqueueBudget(types.NamespacedName{Namespace: b.Namespace, Name: b.Name})
	}
}

// syncBudget is one pass of the disruption controller over a budget.
func (c *Cluster) syncBudget(key types.NamespacedName) {
	old := c.budgets.get(key)
	if old == nil || c.budgetsPaused {
		return
	}
	b := old.DeepCopy()
	pods := sorted(c.pods.live, func(p *corev1.Pod) bool { return p.Namespace == b.Namespace && selects(b, p) })
	expected, desired, err := c.expectations(b, pods)
	if err != nil {
		b.Status.DisruptionsAllowed = 0
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
			Message: err.Error(), ObservedGeneration: b.Status.ObservedGeneration, LastTransitionTime: stamp(c.now()),
		})
	} else {
		disrupted, recheck := stillDisrupted(b, pods, c.now())
		healthy := countHealthy(pods, disrupted, c.now())
		b.Status = policyv1.PodDisruptionBudgetStatus{
			CurrentHealthy: healthy, DesiredHealthy: desired, ExpectedPods: expected, DisruptionsAllowed: max(0, healthy-desired),
			DisruptedPods: disrupted, ObservedGeneration: b.Generation, Conditions: b.Status.Conditions,
		}
		if expected <= 0 {
			b.Status.DisruptionsAllowed = 0
		}
		setDisruptionAllowed(b, c.now())
		if !recheck.IsZero() {
			c.enqueue("recheck "+key.String(), recheck.Sub(c.now())+time.Millisecond, func() { c.syncBudget(key) })
		}
	}
	if !equality.Semantic.DeepEqual(old.Status, b.Status) {
		put(c, &c.budgets, key, b, drain.Change{Budget: key})
	}
}

// expectations are how many pods the budget expects and how many of them it wants healthy.
func (c *Cluster) expectations(b *policyv1.PodDisruptionBudget, pods []*corev1.Pod) (expected, desired int32, err error) {
	most, least := b.Spec.MaxUnavailable, b.Spec.MinAvailable
	if most == nil && least == nil {
		return 0, 0, nil
	}
	if most == nil && least.Type == intstr.Int {
		return int32(len(pods)), least.IntVal, nil
	}
	if expected, err = c.scale(pods); err != nil {
		return 0, 0, err
	}
	bound := most
	if bound == nil {
		bound = least
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(bound, int(expected), true)
	if err != nil {
		return 0, 0, err
	}
	if most == nil {
		return expected, int32(n), nil
	}
	return expected, max(0, expected-int32(n)), nil
}

// scale adds up the replicas of all workloads that own one of the pods. Pods without an owner count for nothing.
func (c *Cluster) scale(pods []*corev1.Pod) (int32, error) {
	seen := map[types.UID]bool{}
	var sum int32
	for _, pod := range pods {
		owner := metav1.GetControllerOf(pod)
		if owner == nil || seen[owner.UID] {
			continue
		}
		w := c.workloads[owner.UID]
		if w == nil || w.Kind == DaemonSet {
			return 0, fmt.Errorf("found no controllers for pod %q", pod.Name)
		}
		seen[owner.UID] = true
		sum += int32(w.Replicas)
	}
	return sum, nil
}

// stillDisrupted keeps of the pods whose eviction was accepted those that are still there and not being deleted yet, and says when the
// first of them is given up.
func stillDisrupted(b *policyv1.PodDisruptionBudget, pods []*corev1.Pod, now time.Time) (map[string]metav1.Time, time.Time) {
	left := maps.Clone(b.Status.DisruptedPods)
	clear(left)
	var recheck time.Time
	for _, pod := range pods {
		at, found := b.Status.DisruptedPods[pod.Name]
		until := at.Add(deletionTimeout)
		if !found || pod.DeletionTimestamp != nil || until.Before(now) {
			continue
		}
		left[pod.Name] = at
		if recheck.IsZero() || until.Before(recheck) {
			recheck = until
		}
	}
	return left, recheck
}

func countHealthy(pods []*corev1.Pod, disrupted map[string]metav1.Time, now time.Time) (n int32) {
	for _, pod := range pods {
		at, found := disrupted[pod.Name]
		leaving := pod.DeletionTimestamp != nil || found && at.Add(deletionTimeout).After(now)
		if !leaving && isReady(pod) {
			n++
		}
	}
	return n
}

// setDisruptionAllowed writes the condition that says whether the budget allows a disruption.
func setDisruptionAllowed(b *policyv1.PodDisruptionBudget, now time.Time) {
	cond := metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
		ObservedGeneration: b.Status.ObservedGeneration, LastTransitionTime: stamp(now),
	}
	if b.Status.DisruptionsAllowed > 0 {
		cond.Status, cond.Reason = metav1.ConditionTrue, policyv1.SufficientPodsReason
	}
	meta.SetStatusCondition(&b.Status.Conditions, cond)
}
