// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/belayproject/belay/rollout/protocol"
)

// A World is one node with its ledger, its shadow and its agent's disk, each as of now. It is what
// [AllTransitions] speaks of. In production each writer has its own view of each part, and calls the functions
// for it.
type World struct {
	Ledger protocol.Ledger
	Shadow protocol.Shadow
	// Disk is the last report that the agent has put on its disk.
	Disk protocol.Report
	// Gone: there is no such Node any more.
	Gone bool
}

// ApplyEvent makes one event happen, by the functions that production calls, with the caps and the revision given.
// It refuses with a [protocol.ErrRefused].
func ApplyEvent(w World, event protocol.Event, caps []protocol.Cap, revision string) (World, error) {
	if w.Gone {
		return w, refuseEvent(event, "node %q is gone", w.Shadow.Node)
	}
	switch event {
	case protocol.EventAdmit, protocol.EventRetry, protocol.EventRelease, EventAcknowledge, protocol.EventGone,
		protocol.EventSuspect, protocol.EventBreak, EventQuarantine:
		l, err := stepLedger(w, event, caps)
		if err != nil {
			return w, err
		}
		w.Ledger, w.Gone = l, event == protocol.EventGone
	case protocol.EventStage, protocol.EventGrant, protocol.EventRevoke, protocol.EventProceed, protocol.EventUndo:
		o, err := stepOrders(w, event, revision)
		if err != nil {
			return w, err
		}
		w.Shadow.Orders = o
	case EventRecreate:
		w.Shadow = protocol.NewShadow(w.Shadow.Node, w.Shadow.UID, w.Ledger)
	case protocol.EventRecall:
		r, changed := protocol.Recall(w.Shadow, w.Disk)
		if !changed {
			return w, refuseEvent(event, "the shadow of node %q says what the disk says", w.Shadow.Node)
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

func stepLedger(w World, event protocol.Event, caps []protocol.Cap) (protocol.Ledger, error) {
	l, sh := w.Ledger, w.Shadow
	switch event {
	case protocol.EventAdmit:
		return l.Admit(protocol.Admission{Shadow: sh, Rollout: "rollout"}, caps, nil)
	case protocol.EventRetry:
		return l.Retry(sh, "rollout")
	case protocol.EventRelease:
		return l.Release(sh)
	case EventAcknowledge:
		return l.Acknowledge(sh)
	case protocol.EventGone:
		return l.Gone(sh.UID)
	case protocol.EventSuspect:
		return l.Mark(sh.UID, protocol.SlotSuspect)
	case protocol.EventBreak:
		return l.Mark(sh.UID, protocol.SlotBroken)
	}
	return l.Mark(sh.UID, protocol.SlotQuarantined)
}

func stepOrders(w World, event protocol.Event, revision string) (protocol.Orders, error) {
	sh := w.Shadow
	if event == protocol.EventStage {
		return sh.Prefetch(revision)
	}
	slot := w.Ledger.Slot(sh.UID)
	if slot == nil {
		return sh.Orders, refuseEvent(event, "node %q has no slot", sh.Node)
	}
	switch event {
	case protocol.EventGrant:
		return sh.Give(*slot, revision, false)
	case protocol.EventRevoke:
		return sh.Revoke(slot.Attempt)
	case protocol.EventProceed:
		return sh.Go(slot.Attempt)
	}
	return sh.Stop(slot.Attempt)
}

// NodeState is [protocol.StateOf] the world, or [protocol.Gone].
func (w World) NodeState() protocol.State {
	if w.Gone {
		return protocol.Gone
	}
	return protocol.StateOf(w.Ledger, w.Shadow)
}

// Events of people and of accidents, which have functions in package protocol and no names there.
const (
	EventAcknowledge protocol.Event = "Acknowledge" // ledger: the slot is free, by a person's word
	EventQuarantine  protocol.Event = "Quarantine"  // ledger: the failure is accepted
	EventRecreate    protocol.Event = "Recreate"    // shadow: a new one, the one before is lost
)

func refuseEvent(event protocol.Event, format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", event, fmt.Sprintf(format, args...), protocol.ErrRefused)
}

// AllPhases are all of them, in the order in which an attempt may pass through them.
func AllPhases() []protocol.Phase {
	return []protocol.Phase{
		"", protocol.PhaseRefused, protocol.PhaseCommitted, protocol.PhaseUndone, protocol.PhaseApplying,
		protocol.PhaseVerifying, protocol.PhaseDone, protocol.PhaseFailedClean, protocol.PhaseFailedBroken,
	}
}
