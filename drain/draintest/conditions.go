// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// isReady reports whether the pod's condition Ready is true, which is all that budgets look at.
func isReady(pod *corev1.Pod) bool {
	for _, cond := range pod.Status.Conditions {
		if cond.Type == corev1.PodReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}

// setPodCondition writes a condition into a pod that is not stored yet.
func setPodCondition(pod *corev1.Pod, cond corev1.PodCondition, now time.Time) {
	cond.LastTransitionTime = stamp(now)
	for i, old := range pod.Status.Conditions {
		if old.Type == cond.Type {
			if old.Status == cond.Status {
				cond.LastTransitionTime = old.LastTransitionTime
			}
			pod.Status.Conditions[i] = cond
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, cond)
}

// setNodeCondition writes a condition into a node that is not stored yet.
func setNodeCondition(node *corev1.Node, cond corev1.NodeCondition, now time.Time) {
	cond.LastHeartbeatTime, cond.LastTransitionTime = stamp(now), stamp(now)
	for i, old := range node.Status.Conditions {
		if old.Type == cond.Type {
			if old.Status == cond.Status {
				cond.LastTransitionTime = old.LastTransitionTime
			}
			node.Status.Conditions[i] = cond
			return
		}
	}
	node.Status.Conditions = append(node.Status.Conditions, cond)
}

func setReady(pod *corev1.Pod, ready bool, now time.Time) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	setPodCondition(pod, corev1.PodCondition{Type: corev1.PodReady, Status: status}, now)
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = ready
	}
}
