// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A World is one node with its ledger, its shadow and its agent's disk, each as of now. It is what [Transitions] speaks of, and for tests and
// models; in production each writer has its own view of each part, and calls the functions for it.
type World struct {
	Ledger Ledger
	Shadow Shadow
	// Disk is the last report that the agent has put on its disk.
	Disk Report
	// Gone: there is no such Node any more.
	Gone bool
}

// Step makes one event happen, by the functions that production calls, with the caps and the revision given. It refuses with an [Error].
func Step(w World, event Event, caps []Cap, revision string) (World, error) {
	if w.Gone {
		return w, refuse(event, ruleUID, "node %q is gone", w.Shadow.Node)
	}
	switch event {
	case EventAdmit, EventRetry, EventRelease, EventAcknowledge, EventGone, EventSuspect, EventBreak, EventQuarantine:
		l, err := stepLedger(w, event, caps)
		if err != nil {
			return w, err
		}
		w.Ledger, w.Gone = l, event == EventGone
	case EventStage, EventGrant, EventRevoke, EventProceed, EventUndo:
		o, err := stepOrders(w, event, revision)
		if err != nil {
			return w, err
		}
		w.Shadow.Orders = o
	case EventRecreate:
		w.Shadow = NewShadow(w.Shadow.Node, w.Shadow.UID, w.Ledger)
	case EventRecall:
		r, changed := Recall(w.Shadow, w.Disk)
		if !changed {
			return w, refuse(event, ruleKnown, "the shadow of node %q says what the disk says", w.Shadow.Node)
		}
		w.Shadow.Report, w.Disk = r, r
	default:
		r, err := w.Shadow.Answer(event)
		if err != nil {
			return w, err
		}
		w.Shadow.Report, w.Disk = r, r
	}
	return w, nil
}

func stepLedger(w World, event Event, caps []Cap) (Ledger, error) {
	l, sh := w.Ledger, w.Shadow
	switch event {
	case EventAdmit:
		return l.Admit(Admission{Shadow: sh, Rollout: "rollout"}, caps, nil)
	case EventRetry:
		return l.Retry(sh, "rollout")
	case EventRelease:
		return l.Release(sh)
	case EventAcknowledge:
		return l.Acknowledge(sh)
	case EventGone:
		return l.Gone(sh.UID)
	case EventSuspect:
		return l.Mark(sh.UID, SlotSuspect)
	case EventBreak:
		return l.Mark(sh.UID, SlotBroken)
	}
	return l.Mark(sh.UID, SlotQuarantined)
}

func stepOrders(w World, event Event, revision string) (Orders, error) {
	sh := w.Shadow
	if event == EventStage {
		return sh.Prefetch(revision)
	}
	slot := w.Ledger.Slot(sh.UID)
	if slot == nil {
		return sh.Orders, refuse(event, ruleSlot, "node %q has no slot", sh.Node)
	}
	switch event {
	case EventGrant:
		return sh.Give(*slot, revision, false)
	case EventRevoke:
		return sh.Revoke(slot.Attempt)
	case EventProceed:
		return sh.Go(slot.Attempt)
	}
	return sh.Stop(slot.Attempt)
}

// State is [StateOf] the world, or [Gone].
func (w World) State() State {
	if w.Gone {
		return Gone
	}
	return StateOf(w.Ledger, w.Shadow)
}
