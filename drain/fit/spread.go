// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A spreadCount is a topology spread constraint with DoNotSchedule and the pods that count for it, by domain.
type spreadCount struct {
	constraint *corev1.TopologySpreadConstraint
	pods       map[string]int
	least      int // pods in the domain with the fewest
	self       int // 1 where the replacement counts itself
}

// countSpread counts the pods of the replacement's constraints.
func (f *filter) countSpread() {
	for i := range f.pod.Spec.TopologySpreadConstraints {
		if c := &f.pod.Spec.TopologySpreadConstraints[i]; c.WhenUnsatisfiable == corev1.DoNotSchedule {
			f.spread = append(f.spread, spreadCount{constraint: c, pods: map[string]int{}})
		}
	}
	for i := range f.spread {
		f.countConstraint(&f.spread[i])
	}
}

func (f *filter) countConstraint(s *spreadCount) {
	selector := spreadSelector(s.constraint, f.pod)
	if selector.Matches(labels.Set(f.pod.Labels)) {
		s.self = 1
	}
	for _, n := range f.nodes {
		if f.hasSpreadKeys(n.node) && f.isEligible(s.constraint, n) {
			s.pods[n.node.Labels[s.constraint.TopologyKey]] += countMatching(n.pods, selector, f.pod.Namespace)
		}
	}
	domains, needed := 0, 1
	for _, count := range s.pods {
		if domains++; domains == 1 || count < s.least {
			s.least = count
		}
	}
	if s.constraint.MinDomains != nil {
		needed = int(*s.constraint.MinDomains)
	}
	if domains < needed {
		s.least = 0
	}
}

// spreadSelector is the selector of a constraint with what its matchLabelKeys add.
func spreadSelector(c *corev1.TopologySpreadConstraint, pod *corev1.Pod) labels.Selector {
	if c.LabelSelector == nil || len(c.MatchLabelKeys) == 0 {
		return selectorOf(c.LabelSelector)
	}
	merged := c.LabelSelector.DeepCopy()
	for _, key := range c.MatchLabelKeys {
		if value, ok := pod.Labels[key]; ok {
			merged.MatchExpressions = append(merged.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value},
			})
		}
	}
	return selectorOf(merged)
}

// hasSpreadKeys reports whether a Node has the topology labels of all constraints; others count for none.
func (f *filter) hasSpreadKeys(node *corev1.Node) bool {
	return !slices.ContainsFunc(f.spread, func(s spreadCount) bool {
		_, ok := node.Labels[s.constraint.TopologyKey]
		return !ok
	})
}

// isEligible reports whether the constraint counts the pods of a Node, by its inclusion policies.
func (f *filter) isEligible(c *corev1.TopologySpreadConstraint, n *nodeState) bool {
	if p := c.NodeAffinityPolicy; (p == nil || *p == corev1.NodeInclusionPolicyHonor) && !matchesNodeAffinity(
		f.pod, n.node) {
		return false
	}
	if p := c.NodeTaintsPolicy; p == nil || *p != corev1.NodeInclusionPolicyHonor {
		return true
	}
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if (n.draining || n.node.Spec.Unschedulable) && !toleratesTaint(f.pod, cordon) {
		return false
	}
	return untoleratedTaint(f.pod, n.node) == nil
}

// countMatching counts the pods of a namespace that do not end. An empty selector counts none, as in the scheduler.
func countMatching(pods []*corev1.Pod, selector labels.Selector, namespace string) int {
	count := 0
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && pod.Namespace == namespace && !selector.Empty() &&
			selector.Matches(labels.Set(pod.Labels)) {
			count++
		}
	}
	return count
}

// checkSpread looks at how much more the domain of a Node would have than the one with the fewest.
func checkSpread(f *filter, n *nodeState) string {
	for i := range f.spread {
		s := &f.spread[i]
		value, ok := n.node.Labels[s.constraint.TopologyKey]
		if !ok {
			return "node(s) didn't match pod topology spread constraints (missing required label)"
		}
		if s.pods[value]+s.self-s.least > int(s.constraint.MaxSkew) {
			return "node(s) didn't match pod topology spread constraints"
		}
	}
	return ""
}
