// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// OpenNodes is how many Nodes a scheduler takes: they are ready, and have no taint. On those alone that are the first there would be more pods than a budget
// lets go at a time, so that who makes work waits for all of them.
func OpenNodes(ctx context.Context, client kubernetes.Interface) (int, error) {
	all, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	return len(slices.DeleteFunc(all.Items, func(n corev1.Node) bool {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		return !ready || len(n.Spec.Taints) > 0
	})), nil
}
