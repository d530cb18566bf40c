// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	configv1alpha1 "github.com/belayproject/belay/configsync/v1alpha1"
)

// unreported is the status of a Node that has no condition about its config.
const unreported = "Absent"

// configs counts the Nodes by what they say of their config. Every status is there, so that none of them is taken for one that is not known.
func (p *Plane) configs() map[string]int {
	count := map[string]int{string(corev1.ConditionTrue): 0, string(corev1.ConditionFalse): 0, string(corev1.ConditionUnknown): 0, unreported: 0}
	if !p.synced.Load() {
		return nil
	}
	for _, n := range p.pods.View().Nodes() {
		count[configOf(n)]++
	}
	return count
}

func configOf(n *corev1.Node) string {
	i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == configv1alpha1.ConditionConfigOK })
	if i < 0 {
		return unreported
	}
	switch status := n.Status.Conditions[i].Status; status {
	case corev1.ConditionTrue, corev1.ConditionFalse:
		return string(status)
	}
	return string(corev1.ConditionUnknown)
}
