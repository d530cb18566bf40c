// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// maxDisrupted is how many evictions may be unconfirmed in one budget.
const maxDisrupted = 2000

// An eviction is one request, as the server sees it.
type eviction struct {
	key    types.NamespacedName
	uid    types.UID // precondition; empty for none
	grace  *int64
	dryRun bool
}

// evict decides an eviction and carries it out. Again says that the server would try the same again by itself: it does so when
// a pod that no budget protects does not meet the precondition.
func (c *Cluster) evict(e eviction) (again bool, err error) {
	if c.terminating[e.key.Namespace] {
		return false, namespaceTerminating(e.key.Name, e.key.Namespace)
	}
	pod := c.pods.get(e.key)
	if pod == nil {
		return false, apierrors.NewNotFound(podResource(), e.key.Name)
	}
	if passesBudgets(pod) {
		err := c.evictNow(e)
		return apierrors.IsConflict(err), err
	}
	matching := c.budgetsOf(pod)
	switch len(matching) {
	case 0:
		return false, c.evictNow(e)
	case 1:
		return false, c.evictUnder(e, pod, matching[0])
	default:
		return false, twoBudgets()
	}
}

// passesBudgets reports whether the server does not ask budgets for the pod.
func passesBudgets(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodPending || finished(p)
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// evictUnder evicts a pod that one budget protects. The unit is spent before the precondition is looked at, as on the server.
func (c *Cluster) evictUnder(e eviction, pod *corev1.Pod, b *policyv1.PodDisruptionBudget) error {
	if !isReady(pod) && letsUnreadyGo(b) {
		err := c.evictNow(e)
		if apierrors.IsConflict(err) {
			return stale(b.Name) // the server takes it for a race with the pod's status
		}
		return err
	}
	if err := c.spend(e, b); err != nil {
		return err
	}
	return c.evictNow(e)
}

func letsUnreadyGo(b *policyv1.PodDisruptionBudget) bool {
	if policy := b.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		return true
	}
	return b.Status.DesiredHealthy > 0 && b.Status.CurrentHealthy >= b.Status.DesiredHealthy
}

// spend takes one unit of the budget for the pod, by its name.
func (c *Cluster) spend(e eviction, b *policyv1.PodDisruptionBudget) error {
	if err := refusal(b); err != nil || e.dryRun {
		return err
	}
	b = b.DeepCopy()
	b.Status.DisruptionsAllowed--
	if b.Status.DisruptionsAllowed == 0 {
		setDisruptionAllowed(b, c.now())
	}
	if b.Status.DisruptedPods == nil {
		b.Status.DisruptedPods = map[string]metav1.Time{}
	}
	b.Status.DisruptedPods[e.key.Name] = stamp(c.now())
	c.putBudget(b)
	return nil
}

// refusal is what the server answers where the budget does not allow an eviction, else nil.
func refusal(b *policyv1.PodDisruptionBudget) error {
	switch {
	case b.Status.ObservedGeneration < b.Generation:
		return stale(b.Name)
	case b.Status.DisruptionsAllowed < 0:
		return apierrors.NewForbidden(budgetSingular(), b.Name, errNegative)
	case len(b.Status.DisruptedPods) > maxDisrupted:
		return apierrors.NewForbidden(budgetSingular(), b.Name, errTooMany)
	case b.Status.DisruptionsAllowed > 0:
		return nil
	}
	failed := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	said := failed != nil && failed.Status == metav1.ConditionFalse && failed.Message != ""
	switch {
	case said && failed.Reason == policyv1.SyncFailedReason:
		return exhausted(fmt.Sprintf("The disruption budget %s does not allow evicting pods currently because it failed sync: %s",
			b.Name, failed.Message))
	case b.Status.CurrentHealthy <= b.Status.DesiredHealthy:
		return exhausted(fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently",
			b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy))
	case said:
		return exhausted(fmt.Sprintf("The disruption budget %s does not allow evicting pods currently (%s): %s",
			b.Name, failed.Reason, failed.Message))
	default:
		return exhausted(fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", b.Name))
	}
}

// evictNow marks the pod as disrupted and deletes it, if the precondition holds.
func (c *Cluster) evictNow(e eviction) error {
	pod := c.pods.get(e.key)
	if e.uid != "" && e.uid != pod.UID {
		return otherUID(pod.Name, e.uid, pod.UID)
	}
	if e.dryRun {
		return nil
	}
	pod = pod.DeepCopy()
	setPodCondition(pod, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
	}, c.now())
	c.putPod(pod)
	return c.deletePod(e)
}

// budgetsOf returns the budgets that match the pod, as the server has them.
func (c *Cluster) budgetsOf(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	return sorted(c.budgets.live, func(b *policyv1.PodDisruptionBudget) bool {
		return b.Namespace == pod.Namespace && selects(b, pod)
	})
}

// selects reports whether the budget's selector matches the pod; one that is not valid matches none.
func selects(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}
