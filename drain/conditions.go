// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conditions of a node under maintenance, as KEP-5683 names them.
const (
	conditionDrainInProgress       corev1.NodeConditionType = "DrainInProgress"
	conditionDrained               corev1.NodeConditionType = "Drained"
	conditionMaintenancePlanned    corev1.NodeConditionType = "MaintenancePlanned"
	conditionMaintenanceInProgress corev1.NodeConditionType = "MaintenanceInProgress"
)

// The categories of causes that KEP-5683 gives as reasons.
const (
	causeAdmin  = "AdminRequested"
	causeDone   = "DrainCompleted"
	causeWindow = "MaintenanceWindow"
)

// nodeConditions says a status in the conditions of KEP-5683, always all four, without times. The reason of one that is
// True is a category of causes of the KEP, that of one that is False is the phase.
func nodeConditions(s Status) []corev1.NodeCondition {
	is := map[corev1.NodeConditionType]string{}
	switch s.Phase {
	case Pending:
		is[conditionMaintenancePlanned] = causeAdmin
		if s.Reason == WindowClosed {
			is[conditionMaintenancePlanned] = causeWindow
		}
	case Draining, Paused, Settling:
		is[conditionDrainInProgress], is[conditionMaintenanceInProgress] = causeAdmin, causeAdmin
	case Drained:
		is[conditionDrained], is[conditionMaintenanceInProgress] = causeDone, causeAdmin
	case Cordoned, Holding, HoldEnded:
		is[conditionMaintenanceInProgress] = causeAdmin
	}
	message := fmt.Sprintf("maintenance %q of %q", s.Maintenance, s.Holder)
	if s.Message != "" {
		message += ": " + s.Message
	}
	var out []corev1.NodeCondition
	for _, t := range maintenanceConditions() {
		c := corev1.NodeCondition{Type: t, Status: corev1.ConditionFalse, Reason: string(s.Phase), Message: message}
		if cause, ok := is[t]; ok {
			c.Status, c.Reason = corev1.ConditionTrue, cause
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
	if !p.d.o.NodeConditions || isConditionTrue(p.node, conditionDrainInProgress) {
		return true, nil
	}
	p.st.Phase = Draining
	return writeConditions(ctx, p, conditionsOn(p.node, p.st, p.now))
}

// writeConditions writes conditions alone. They tell of a drain, and hold it up nowhere: where the right to write them
// is missing, an event says so once, and the drain goes on without.
func writeConditions(ctx context.Context, p *pass, list []corev1.NodeCondition) (bool, error) {
	if p.memory.told.refused {
		return true, nil
	}
	unsure := p.memory.unsure.Load()
	ok, err := p.write(ctx, nodeChange{mark: p.mark, conditions: list})
	if !apierrors.IsForbidden(err) {
		return ok, err
	}
	p.memory.unsure.Store(unsure)
	noteRefused(p, err)
	return true, nil
}

// noteRefused says that conditions are not written from now on.
func noteRefused(p *pass, err error) {
	p.memory.told.refused = true
	p.event(corev1.EventTypeWarning, "ConditionsForbidden", fmt.Sprintf("the drain goes on without conditions: %v", err))
}

// isPlannedByOther reports whether the conditions tell of a maintenance to come that is another holder's.
func isPlannedByOther(p *pass) bool {
	own := fmt.Sprintf("maintenance %q of %q", p.st.Maintenance, p.st.Holder)
	return slices.ContainsFunc(p.node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == conditionMaintenancePlanned && c.Status == corev1.ConditionTrue && !strings.HasPrefix(c.Message, own)
	})
}

// publishPlanned writes that the maintenance of a node is to come: of one that waits for its place in a set, or for a
// window. message says for what, and when that is, if it is known. It reports whether that is on the node.
func publishPlanned(ctx context.Context, p *pass, reason Reason, message string) (bool, error) {
	underWay := isConditionTrue(p.node, conditionMaintenanceInProgress) && p.mark.held()
	if !p.d.o.NodeConditions || underWay || isPlannedByOther(p) {
		return true, nil // what another holder does, or will do, is not to be hidden
	}
	planned := p.st
	planned.Phase, planned.Reason, planned.Message = Pending, reason, message
	want := nodeConditions(planned)
	there := func(w corev1.NodeCondition) bool {
		return slices.ContainsFunc(p.node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == w.Type && c.Status == w.Status && c.Message == w.Message
		})
	}
	if !slices.ContainsFunc(want, func(w corev1.NodeCondition) bool { return !there(w) }) {
		return true, nil
	}
	return writeConditions(ctx, p, conditionsOn(p.node, planned, p.now))
}

// publishWaiting writes that the maintenance of a node is to come which is cordoned and waits for its turn in a set.
func publishWaiting(ctx context.Context, p *pass, mode Mode) error {
	if mode != modeWaiting {
		return nil
	}
	_, err := publishPlanned(ctx, p, reasonWaitingForSlot, "waits for its place in a set of nodes")
	return err
}

// isPlanned reports whether a window is to come on a node that has no holder.
func isPlanned(p *pass) bool {
	return !p.mark.held() && !planWindows(p.r.Policy.Windows).openFrom(p.now).IsZero()
}

// isSilent reports whether the conditions of a node that waits for its turn in a set are to say so, and do not.
func isSilent(d *Drainer, name string) bool {
	node := d.registry.newest(d.o.Cache, name)
	return d.o.NodeConditions && node != nil && !isConditionTrue(node, conditionMaintenancePlanned) &&
		!isConditionTrue(node, conditionMaintenanceInProgress)
}

func isConditionTrue(node *corev1.Node, name corev1.NodeConditionType) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == name && c.Status == corev1.ConditionTrue
	})
}

// unpublish takes the conditions off a node that nobody holds any more.
func (p *pass) unpublish(ctx context.Context) (bool, error) {
	list := withoutConditions(p.node)
	if !p.d.o.NodeConditions || len(list) == len(p.node.Status.Conditions) || p.mark.held() || isPlannedByOther(p) {
		return true, nil
	}
	return writeConditions(ctx, p, list)
}
