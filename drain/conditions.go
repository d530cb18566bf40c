// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conditions of a node under maintenance, as KEP-5683 names them.
const (
	conditionDrainInProgress       corev1.NodeConditionType = "DrainInProgress"
	conditionDrained               corev1.NodeConditionType = "Drained"
	conditionMaintenancePlanned    corev1.NodeConditionType = "MaintenancePlanned"
	conditionMaintenanceInProgress corev1.NodeConditionType = "MaintenanceInProgress"
)

// nodeConditions says a status in the conditions of KEP-5683, always all four, without times.
func nodeConditions(s Status) []corev1.NodeCondition {
	is := map[corev1.NodeConditionType]bool{}
	switch s.Phase {
	case Pending:
		is[conditionMaintenancePlanned] = true
	case Draining, Paused, Settling:
		is[conditionDrainInProgress], is[conditionMaintenanceInProgress] = true, true
	case Drained:
		is[conditionDrained], is[conditionMaintenanceInProgress] = true, true
	case Cordoned, Holding, HoldEnded:
		is[conditionMaintenanceInProgress] = true
	}
	var out []corev1.NodeCondition
	for _, t := range maintenanceConditions() {
		c := corev1.NodeCondition{Type: t, Status: corev1.ConditionFalse, Reason: string(s.Phase), Message: s.Message}
		if is[t] {
			c.Status = corev1.ConditionTrue
			c.Reason = cmp.Or(string(s.Reason), string(s.Phase))
		}
		out = append(out, c)
	}
	return out
}

func maintenanceConditions() []corev1.NodeConditionType {
	return []corev1.NodeConditionType{conditionDrainInProgress, conditionDrained, conditionMaintenancePlanned, conditionMaintenanceInProgress}
}

// conditionsOn is the node's whole list with those of s, each with the time at which it last changed.
func conditionsOn(node *corev1.Node, s Status, now time.Time) []corev1.NodeCondition {
	list := withoutConditions(node)
	for _, c := range nodeConditions(s) {
		c.LastHeartbeatTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		for _, old := range node.Status.Conditions {
			if old.Type == c.Type && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
		list = append(list, c)
	}
	return list
}

// withoutConditions is the node's list without those of a maintenance.
func withoutConditions(node *corev1.Node) []corev1.NodeCondition {
	ours := maintenanceConditions()
	list := slices.DeleteFunc(slices.Clone(node.Status.Conditions), func(c corev1.NodeCondition) bool { return slices.Contains(ours, c.Type) })
	if list == nil {
		list = []corev1.NodeCondition{}
	}
	return list
}

// publish writes the conditions at the beginning of a drain, where that is asked for. It reports whether they are on the node.
func (p *pass) publish(ctx context.Context) (bool, error) {
	there := slices.ContainsFunc(p.node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == conditionDrainInProgress && c.Status == corev1.ConditionTrue
	})
	if !p.d.o.NodeConditions || there {
		return true, nil
	}
	p.st.Phase = Draining
	return p.write(ctx, nodeChange{mark: p.mark, conditions: conditionsOn(p.node, p.st, p.now)})
}

// unpublish takes the conditions off a node that nobody holds any more.
func (p *pass) unpublish(ctx context.Context) (bool, error) {
	list := withoutConditions(p.node)
	if !p.d.o.NodeConditions || len(list) == len(p.node.Status.Conditions) || p.mark.held() {
		return true, nil
	}
	return p.write(ctx, nodeChange{mark: p.mark, conditions: list})
}
