// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkNode looks at the cordon, the taints and the labels of a Node.
func checkNode(f *filter, n *nodeState) string {
	if n.draining {
		return "node(s) are being drained"
	}
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if n.node.Spec.Unschedulable && !toleratesTaint(f.pod, cordon) {
		return "node(s) were unschedulable"
	}
	if taint := untoleratedTaint(f.pod, n.node); taint != nil {
		return fmt.Sprintf("node(s) had untolerated taint {%s: %s}", taint.Key, taint.Value)
	}
	if !matchesNodeAffinity(f.pod, n.node) {
		return "node(s) didn't match Pod's node affinity/selector"
	}
	return ""
}

// untoleratedTaint is the first taint of a Node that keeps a pod away, or nil.
func untoleratedTaint(pod *corev1.Pod, node *corev1.Node) *corev1.Taint {
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !toleratesTaint(pod, *taint) {
			return taint
		}
	}
	return nil
}

// toleratesTaint follows the API, without the operators that compare numbers. It does not call the method of
// corev1.Toleration, whose signature has changed with k8s.io/api v0.35: a program at either version could not be built.
func toleratesTaint(pod *corev1.Pod, taint corev1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			return false
		}
		switch t.Operator {
		case "", corev1.TolerationOpEqual:
			return t.Value == taint.Value
		default:
			return t.Operator == corev1.TolerationOpExists
		}
	})
}

// matchesNodeAffinity reports whether a Node has what the pod's nodeSelector and required node affinity ask for.
func matchesNodeAffinity(pod *corev1.Pod, node *corev1.Node) bool {
	for key, value := range pod.Spec.NodeSelector {
		if got, ok := node.Labels[key]; !ok || got != value {
			return false
		}
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		return matchesNodeSelector(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution, node)
	}
	return true
}

// matchesNodeSelector reports whether one term of a selector matches. A selector that is nil matches every Node, a term
// without requirements none.
func matchesNodeSelector(selector *corev1.NodeSelector, node *corev1.Node) bool {
	if selector == nil {
		return true
	}
	return slices.ContainsFunc(selector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
			return false
		}
		return matchesRequirements(term.MatchExpressions, node.Labels) &&
			matchesRequirements(term.MatchFields, map[string]string{metav1.ObjectNameField: node.Name})
	})
}

func matchesRequirements(requirements []corev1.NodeSelectorRequirement, values map[string]string) bool {
	return !slices.ContainsFunc(requirements, func(r corev1.NodeSelectorRequirement) bool {
		value, ok := values[r.Key]
		return !matchesRequirement(&r, value, ok)
	})
}

func matchesRequirement(r *corev1.NodeSelectorRequirement, value string, exists bool) bool {
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return exists && slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !exists || !slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpExists:
		return exists
	case corev1.NodeSelectorOpDoesNotExist:
		return !exists
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if !exists || len(r.Values) != 1 {
			return false
		}
		got, err := strconv.ParseInt(value, 10, 64)
		limit, err2 := strconv.ParseInt(r.Values[0], 10, 64)
		if err != nil || err2 != nil {
			return false
		}
		return r.Operator == corev1.NodeSelectorOpGt && got > limit || r.Operator == corev1.NodeSelectorOpLt && got < limit
	}
	return false
}
