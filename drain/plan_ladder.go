// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A planLadder is where a node's drain stands on the ladder of escalation.
type planLadder struct {
	due *Escalation // the hardest step whose time has come; nil for eviction
	// forced is true when that step is StepOutOfService.
	forced bool
	next   *Escalation // the first step whose time has not come
	nextAt time.Time
	// forceAt is when StepOutOfService comes, the only step for pods that are already ending.
	forceAt time.Time
}

// ladderOf counts from the start of the drain. A drain that has not begun is on no step, and a machine without proof that it is off
// has no StepOutOfService.
func ladderOf(v *NodeView, steps []Escalation, now time.Time) planLadder {
	var l planLadder
	if v.Started.IsZero() {
		return l
	}
	for i := range steps {
		e := &steps[i]
		if e.Step != StepDelete && (e.Step != StepOutOfService || !v.PoweredOff) {
			continue
		}
		at := v.Started.Add(e.After)
		switch {
		case !now.Before(at):
			if l.due == nil || e.After >= l.due.After {
				l.due = e
			}
		default:
			if l.next == nil || at.Before(l.nextAt) {
				l.next, l.nextAt = e, at
			}
			if e.Step == StepOutOfService && (l.forceAt.IsZero() || at.Before(l.forceAt)) {
				l.forceAt = at
			}
		}
	}
	l.forced = l.due != nil && l.due.Step == StepOutOfService
	return l
}

// shorterGrace returns the grace period with which a step shortens that of a pod which is ending already, or nil. The
// API server counts both from the deletion, and shortens only.
func shorterGrace(n *nodePass, pod *corev1.Pod, e *Escalation) *int64 {
	if e == nil || e.Step != StepDelete || pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return nil
	}
	if g := n.grace(pod, e.GracePeriodSeconds); g != nil && *g < *pod.DeletionGracePeriodSeconds {
		return g
	}
	return nil
}

// shortensNow decides to shorten the running grace period of a pod where a step that is due does.
func shortensNow(n *nodePass, w *podWork) bool {
	g := shorterGrace(n, w.pod, n.ladder.due)
	answer, answered := n.view.Attempts[w.UID]
	if g == nil || !n.now.Before(w.pod.DeletionTimestamp.Time) || answered && w.isHeldBy(answer, true) {
		return false
	}
	w.decide(Evict, reasonNone, fmt.Sprintf("its grace period of %d s is shortened to %d s",
		*w.pod.DeletionGracePeriodSeconds, *g))
	w.Step, w.GracePeriodSeconds = StepDelete, g
	return true
}

// announce says what comes next for a pod that is still there. Pods that wait for their order, their completion or a responder have
// conditions of their own; only a machine that is off ends those.
func (n *nodePass) announce(w *podWork) {
	if w.Action == Skip || n.ladder.forced {
		return
	}
	ladder := ladderFor(n, w)
	n.wake(n.ladder.forceAt)
	switch {
	case !w.deleteAt.IsZero():
		w.Next, w.NextAt = StepDelete, n.windows.openFrom(w.deleteAt)
	case w.ladder && w.Reason != WaitingForOrder:
		if ladder.next != nil {
			w.Next, w.NextAt = ladder.next.Step, n.windows.openFrom(ladder.nextAt)
			n.wake(ladder.nextAt)
		}
	case w.Reason == Terminating && shorterGrace(n, w.pod, n.ladder.next) != nil:
		w.Next, w.NextAt = StepDelete, n.windows.openFrom(n.ladder.nextAt)
		n.wake(n.ladder.nextAt)
	case !n.ladder.forceAt.IsZero():
		w.Next, w.NextAt = StepOutOfService, n.windows.openFrom(n.ladder.forceAt)
	}
	if w.NextAt.IsZero() {
		w.Next = ""
	}
}
