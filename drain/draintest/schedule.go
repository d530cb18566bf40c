// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// schedule binds every pending pod that fits somewhere.
func (c *Cluster) schedule() {
	for _, pod := range sorted(c.pods.live, func(p *corev1.Pod) bool {
		return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodPending
	}) {
		if node := c.nodeFor(pod); node != "" {
			pod = pod.DeepCopy()
			bind(pod, node)
			c.putPod(pod)
		}
	}
}

// nodeFor picks, of the nodes that take the pod, the one with the fewest pods; it returns "" where none does.
func (c *Cluster) nodeFor(pod *corev1.Pod) string {
	load := map[string]int{}
	for _, p := range c.pods.live {
		load[p.Spec.NodeName]++
	}
	best := ""
	for _, node := range sorted(c.nodes.live, nil) {
		if takes(node, pod, load[node.Name]) == "" && (best == "" || load[node.Name] < load[best]) {
			best = node.Name
		}
	}
	return best
}

// takes says why the node does not take the pod, or "".
func takes(node *corev1.Node, pod *corev1.Pod, load int) string {
	if !nodeReady(node) {
		return "not ready"
	}
	taints := node.Spec.Taints
	if node.Spec.Unschedulable {
		taints = append(taints[:len(taints):len(taints)], corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	for _, taint := range taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(pod, taint) {
			return "taint " + taint.Key
		}
	}
	if !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(node.Labels)) {
		return "node selector"
	}
	if room, ok := node.Status.Allocatable[corev1.ResourcePods]; ok && int64(load) >= room.Value() {
		return "too many pods"
	}
	return ""
}

// tolerates follows the rules of the API, without the operators that compare numbers.
func tolerates(pod *corev1.Pod, taint corev1.Taint) bool {
	for _, t := range pod.Spec.Tolerations {
		effect := t.Effect == "" || t.Effect == taint.Effect
		key := t.Key == "" && t.Operator == corev1.TolerationOpExists || t.Key == taint.Key
		value := t.Operator == corev1.TolerationOpExists || t.Value == taint.Value
		if effect && key && value {
			return true
		}
	}
	return false
}

// Fits is a [drain.Options].Fits: it says whether some other node would take the pod now.
func (c *Cluster) Fits(pod *corev1.Pod) (bool, string) {
	c.lock()
	defer c.unlock()
	load := map[string]int{}
	for _, p := range c.pods.live {
		load[p.Spec.NodeName]++
	}
	for _, node := range sorted(c.nodes.live, nil) {
		if node.Name != pod.Spec.NodeName && takes(node, pod, load[node.Name]) == "" {
			return true, ""
		}
	}
	return false, fmt.Sprintf("none of the other %d nodes takes it", max(0, len(c.nodes.live)-1))
}

func bind(pod *corev1.Pod, node string) { pod.Spec.NodeName = node }
