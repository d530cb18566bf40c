// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"
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
	case !n.ladder.forceAt.IsZero():
		w.Next, w.NextAt = StepOutOfService, n.windows.openFrom(n.ladder.forceAt)
	}
	if w.NextAt.IsZero() {
		w.Next = ""
	}
}
