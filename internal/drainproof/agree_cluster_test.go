// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// An agreeCluster is a random cluster: pods on up to three nodes, budgets over them in every state that a server can be in.
type agreeCluster struct {
	*agreement
	rng        *rand.Rand
	namespaces []string
	pods       []*corev1.Pod
}

// chance is true in n of a hundred cases.
func (c *agreeCluster) chance(n int) bool { return c.rng.IntN(100) < n }

// oneOf picks by weight.
func oneOf[T any](rng *rand.Rand, weights []int, values []T) T {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := rng.IntN(sum)
	for i, w := range weights {
		if n < w {
			return values[i]
		}
		n -= w
	}
	return values[len(values)-1]
}

func (c *agreeCluster) build(ctx context.Context) error {
	nodes := 1 + c.rng.IntN(3)
	namespaces := 1 + c.rng.IntN(len(c.namespaces))
	for i := range 3 + c.rng.IntN(12) {
		name := fmt.Sprintf("p-%03d-%d", c.rng.IntN(1000), i)
		if err := c.addPod(ctx, c.namespaces[c.rng.IntN(namespaces)], name, fmt.Sprintf("node-%d", c.rng.IntN(nodes))); err != nil {
			return err
		}
	}
	for _, ns := range c.namespaces[:namespaces] {
		for i := range oneOf(c.rng, []int{1, 5, 4, 2}, []int{0, 1, 2, 3}) {
			if err := c.addBudget(ctx, ns, fmt.Sprintf("b-%d", i)); err != nil {
				return err
			}
		}
	}
	if namespaces < len(c.namespaces) {
		return c.addStale(ctx, c.namespaces[namespaces])
	}
	return nil
}

// addStale fills a namespace with what chance makes too seldom to be there each time: a ready pod whose only budget would allow it to go, had
// its status been of its spec.
func (c *agreeCluster) addStale(ctx context.Context, ns string) error {
	pod, err := c.create(ctx, ns, "node-0", "stale", map[string]string{"app": "a"}, podState{phase: corev1.PodRunning, ready: corev1.ConditionTrue})
	if err != nil {
		return err
	}
	c.pods = append(c.pods, pod)
	budgets := c.api.PolicyV1().PodDisruptionBudgets(ns)
	b, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "stale"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}, MaxUnavailable: ptr.To(intstr.FromInt(1))},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, ExpectedPods: 1, CurrentHealthy: 1, DisruptionsAllowed: 1}
	if b, err = budgets.UpdateStatus(ctx, b, metav1.UpdateOptions{}); err != nil {
		return err
	}
	b.Spec.MaxUnavailable = ptr.To(intstr.FromInt(2))
	_, err = budgets.Update(ctx, b, metav1.UpdateOptions{})
	return err
}

// A podState is what a server looks at when it is asked to evict.
type podState struct {
	phase  corev1.PodPhase
	ready  corev1.ConditionStatus // empty: no condition
	ending bool
}

func (c *agreeCluster) state() podState {
	return oneOf(c.rng, []int{50, 12, 4, 3, 8, 2, 4, 4, 6, 3, 4}, []podState{
		{corev1.PodRunning, corev1.ConditionTrue, false}, {corev1.PodRunning, corev1.ConditionFalse, false},
		{corev1.PodRunning, "", false}, {corev1.PodRunning, corev1.ConditionUnknown, false},
		{corev1.PodPending, "", false}, {corev1.PodPending, corev1.ConditionTrue, false},
		{corev1.PodSucceeded, corev1.ConditionFalse, false}, {corev1.PodFailed, corev1.ConditionTrue, false},
		{corev1.PodRunning, corev1.ConditionTrue, true}, {corev1.PodRunning, corev1.ConditionFalse, true}, {corev1.PodPending, "", true},
	})
}

func (c *agreeCluster) addPod(ctx context.Context, ns, name, node string) error {
	labels := map[string]string{"app": oneOf(c.rng, []int{5, 3, 2}, []string{"a", "b", "c"})}
	if c.chance(30) {
		labels["extra"] = oneOf(c.rng, []int{1, 1}, []string{"x", "y"})
	}
	state := c.state()
	pod, err := c.create(ctx, ns, node, name, labels, state)
	if err != nil {
		return err
	}
	c.pods = append(c.pods, pod)
	if !state.ending {
		return nil
	}
	pod.DeletionTimestamp = ptr.To(metav1.Now()) // for the arithmetic of the budgets
	return c.api.CoreV1().Pods(ns).Delete(ctx, name, metav1.DeleteOptions{})
}

// create makes a pod in a state.
func (c *agreeCluster) create(ctx context.Context, ns, node, name string, labels map[string]string, state podState) (*corev1.Pod, error) {
	pods := c.api.CoreV1().Pods(ns)
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: ptr.To(int64(300)),
			Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	pod.Status.Phase = state.phase
	if state.ready != "" {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: state.ready})
	}
	return pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
}

func (c *agreeCluster) selector() *metav1.LabelSelector {
	app := oneOf(c.rng, []int{5, 3, 2}, []string{"a", "b", "c"})
	expressions := func(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	return oneOf(c.rng, []int{8, 10, 50, 10, 8, 8, 6}, []*metav1.LabelSelector{
		nil, {}, {MatchLabels: map[string]string{"app": app}}, {MatchLabels: map[string]string{"app": app, "extra": "x"}},
		expressions("app", metav1.LabelSelectorOpNotIn, app), expressions("extra", metav1.LabelSelectorOpExists),
		expressions("extra", metav1.LabelSelectorOpDoesNotExist),
	})
}

// bound is a number or a percent, mostly such that something is allowed.
func (c *agreeCluster) bound() *intstr.IntOrString {
	if c.chance(50) {
		return ptr.To(intstr.FromInt(c.rng.IntN(4)))
	}
	return ptr.To(intstr.FromString(oneOf(c.rng, []int{1, 3, 3, 3, 2, 1}, []string{"0%", "20%", "34%", "50%", "75%", "100%"})))
}

func (c *agreeCluster) addBudget(ctx context.Context, ns, name string) error {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: c.selector()}}
	switch bound := c.bound(); {
	case c.chance(5): // neither
	case c.chance(50):
		b.Spec.MinAvailable = bound
	default:
		b.Spec.MaxUnavailable = bound
	}
	b.Spec.UnhealthyPodEvictionPolicy = oneOf(c.rng, []int{4, 3, 4}, []*policyv1.UnhealthyPodEvictionPolicyType{
		nil, ptr.To(policyv1.IfHealthyBudget), ptr.To(policyv1.AlwaysAllow),
	})
	budgets := c.api.PolicyV1().PodDisruptionBudgets(ns)
	b, err := budgets.Create(ctx, b, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	c.observe(b)
	if b, err = budgets.UpdateStatus(ctx, b, metav1.UpdateOptions{}); err != nil || !c.chance(12) {
		return err
	}
	b.Spec.MinAvailable, b.Spec.MaxUnavailable = ptr.To(intstr.FromInt(17)), nil // its status is stale from now on
	_, err = budgets.Update(ctx, b, metav1.UpdateOptions{})
	return err
}

// observe gives the budget a status as the disruption controller would, for pods whose owners want exactly those that are there.
func (c *agreeCluster) observe(b *policyv1.PodDisruptionBudget) {
	st := &b.Status
	st.ObservedGeneration = b.Generation
	if c.chance(4) {
		st.Conditions = []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
			Message: "made up", ObservedGeneration: b.Generation, LastTransitionTime: metav1.Now(),
		}}
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return
	}
	st.DisruptedPods = map[string]metav1.Time{}
	for _, pod := range c.pods {
		if pod.Namespace != b.Namespace || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		st.ExpectedPods++
		disrupted := c.chance(6)
		if disrupted {
			st.DisruptedPods[pod.Name] = metav1.NewTime(time.Now())
		}
		if !disrupted && pod.DeletionTimestamp == nil && isReady(pod) {
			st.CurrentHealthy++
		}
	}
	st.DesiredHealthy = desiredHealthy(b.Spec, st.ExpectedPods)
	if st.ExpectedPods > 0 {
		st.DisruptionsAllowed = max(0, st.CurrentHealthy-st.DesiredHealthy)
	}
}

func desiredHealthy(spec policyv1.PodDisruptionBudgetSpec, expected int32) int32 {
	scaled := func(v *intstr.IntOrString) int32 {
		n, err := intstr.GetScaledValueFromIntOrPercent(v, int(expected), true)
		if err != nil {
			return 0
		}
		return int32(n)
	}
	switch {
	case spec.MaxUnavailable != nil:
		return max(0, expected-scaled(spec.MaxUnavailable))
	case spec.MinAvailable != nil:
		return scaled(spec.MinAvailable)
	}
	return 0
}

func isReady(pod *corev1.Pod) bool {
	for _, cond := range pod.Status.Conditions {
		if cond.Type == corev1.PodReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}
