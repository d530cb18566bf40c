// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"encoding/json"
	"slices"

	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// freed: I1, a slot goes when its attempt can't disrupt the node any more, by the shadow as it is at that moment, or when its Node is gone. What
// allows it can't become false again, so it does not matter on which version the controller has seen it.
func (a *auditor) freed(v version, before, now protocol.Ledger) {
	for _, s := range before.Slots {
		if now.Slot(s.UID) != nil || a.nodes[s.Node] != s.UID {
			continue
		}
		sh, known := a.shadows[s.Node]
		ended := sh.Report.Attempt >= s.Attempt || sh.Orders.Revoked >= s.Attempt
		if !known || sh.UID != s.UID || !sh.Report.Known || !sh.Report.Phase.AtRest() || !ended {
			a.fault("I1: the ledger at %d frees the slot of node %s, attempt %d; its shadow is %+v", v.Revision, s.Node, s.Attempt, sh)
		}
	}
}

// admitted: E23, what was closed and stays so admits nothing.
func (a *auditor) admitted(v version, before, now protocol.Ledger) {
	for _, s := range now.Slots {
		if was := before.Slot(s.UID); was != nil && was.Attempt == s.Attempt {
			continue
		}
		for _, c := range before.Closures {
			still := slices.ContainsFunc(now.Closures, func(o protocol.Closure) bool { return o.Scope == c.Scope && o.Request == c.Request })
			if still && (c.Scope == "" || c.Scope == s.Rollout) {
				a.fault("E23: the ledger at %d admits attempt %d of node %s, and is closed by %q", v.Revision, s.Attempt, s.Node, c.Request)
			}
		}
	}
}

// allowed checks what a shadow says against the ledger of that moment, and against its own orders. A Node that is gone has no slot any more, while its shadow may
// still be there: nothing follows for it.
func (a *auditor) allowed(v version, before, sh protocol.Shadow) {
	if before.UID != sh.UID {
		before = protocol.Shadow{}
	}
	if a.nodes[sh.Node] == sh.UID {
		a.placed(v, before, sh)
	}
	a.told(v, sh)
}

// placed: E21 and I1, a node that is granted an attempt, or commits it, has the slot of that attempt; one that is disrupted has a slot, which may be that of a
// later attempt in the same place. I2 and E23: none commits after its rollout has acknowledged that it is stopped.
func (a *auditor) placed(v version, before, sh protocol.Shadow) {
	r, o, slot := sh.Report, sh.Orders, a.now.Slot(sh.UID)
	var attempt protocol.Attempt
	if slot != nil {
		attempt = slot.Attempt
	}
	commits := r.Phase == protocol.PhaseCommitted && r.Attempt > before.Report.Attempt
	switch {
	case o.Grant > before.Orders.Grant && attempt != o.Grant:
		a.fault("E21: node %s is granted attempt %d at %d, its slot is that of %d", sh.Node, o.Grant, v.Revision, attempt)
	case commits && attempt != r.Attempt:
		a.fault("E21: node %s commits attempt %d at %d, its slot is that of %d", sh.Node, r.Attempt, v.Revision, attempt)
	case !r.Phase.AtRest() && attempt < r.Attempt:
		a.fault("E21: node %s is %s in attempt %d at %d, its slot is that of %d", sh.Node, r.Phase, r.Attempt, v.Revision, attempt)
	case commits && a.stopped[slot.Rollout]:
		a.fault("E23: node %s commits attempt %d at %d, and its rollout has acknowledged that it is stopped", sh.Node, r.Attempt, v.Revision)
	}
}

// told: E16 and E22, what changes a node comes after the word to proceed, and what gives an attempt up after the word to undo it.
func (a *auditor) told(v version, sh protocol.Shadow) {
	r, o := sh.Report, sh.Orders
	told := true
	switch r.Phase {
	case protocol.PhaseApplying, protocol.PhaseVerifying, protocol.PhaseDone, protocol.PhaseFailedClean:
		told = o.Proceed >= r.Attempt
	case protocol.PhaseFailedBroken:
		told = o.Proceed >= r.Attempt || r.Broken && o.Undo >= r.Attempt
	case protocol.PhaseUndone:
		told = o.Undo >= r.Attempt
	}
	if !told {
		a.fault("E16: node %s is %s in attempt %d at %d, and was told to proceed up to %d, to be undone up to %d",
			sh.Node, r.Phase, r.Attempt, v.Revision, o.Proceed, o.Undo)
	}
}

// rollout takes in that it is stopped: from there on until the ledger is opened no node of it commits.
func (a *auditor) rollout(v version) error {
	if v.Value == nil {
		return nil
	}
	var r v1alpha1.Rollout
	if err := json.Unmarshal(v.Value, &r); err != nil {
		return err
	}
	if uid := string(r.UID); r.Status.Acknowledged && a.now.ClosedFor(uid) != nil {
		a.stopped[uid] = true
	}
	return nil
}
