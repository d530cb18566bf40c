// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A Draft is a ledger that is changed several times before it is stored. What its own methods do is what those of [Ledger] of the same name do, by the
// same rules, but in one copy: a pass over a large domain does not copy all slots for each node. Its Ledger may be read at any time, and is not to be
// kept before the last change. Drafts are not to be copied after the first one. Make it with [Ledger.Draft].
type Draft struct {
	Ledger
	own bool
}

// Draft returns a draft that begins with the ledger, and never changes it.
func (l Ledger) Draft() Draft { return Draft{Ledger: l} }

// Admit is [Ledger.Admit]. What was refused has changed nothing.
func (d *Draft) Admit(a Admission, caps []Cap, absent []Absent) error {
	if err := a.validate(); err != nil {
		return err
	}
	if c := d.ClosedFor(a.Rollout); c != nil {
		return refuse(EventAdmit, ruleClosed, "the ledger is closed by %q: %s", c.Request, c.Reason)
	}
	sh := &a.Shadow
	for i := range d.Slots {
		if s := &d.Slots[i]; s.UID == sh.UID || s.Node == sh.Node {
			return refuse(EventAdmit, ruleOneSlot, "node %q has a slot, attempt %d", s.Node, s.Attempt)
		}
	}
	if !sh.Removable() {
		return refuse(EventAdmit, ruleAtRest, "node %q is %q in attempt %d, granted %d, and its agent has spoken: %t",
			sh.Node, sh.Report.Phase, sh.Report.Attempt, sh.Orders.Grant, sh.Report.Known)
	}
	d.copy()
	slot := Slot{Node: sh.Node, UID: sh.UID, Attempt: d.Epoch + 1, Rollout: a.Rollout, Keys: sorted(a.Keys)}
	next := d.Ledger
	next.Epoch, next.Slots = slot.Attempt, append(next.Slots, slot)
	if over := next.over(a, caps, absent); over != nil {
		return over
	}
	d.Ledger = next
	return nil
}

// Release is [Ledger.Release].
func (d *Draft) Release(sh Shadow) error {
	i, err := d.ended(sh)
	if err != nil {
		return err
	}
	d.copy()
	d.Slots = slices.Delete(d.Slots, i, i+1)
	return nil
}

// copy makes the slots the draft's own, with room for some more.
func (d *Draft) copy() {
	if !d.own {
		const room = 4
		d.own, d.Slots = true, append(make([]Slot, 0, len(d.Slots)+room), d.Slots...)
	}
}
