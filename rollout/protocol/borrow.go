// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strings"
)

// Prefixes of a borrowed slot: that of its Rollout, and that of the key that names its holder for people.
const (
	borrowed  = "borrowed/"
	holderKey = "holder/"
)

// A Loan is a slot for somebody who disturbs a node and is no rollout, as a machine that is replaced. It has no shadow: it is taken before the
// node is disturbed, and returned by its holder when that is over.
type Loan struct {
	// Holder is the UID of who disturbs the node, and Name its name.
	Holder, Name string
	// Node and UID are the node's. Both may be empty where there is none, or none yet: the loan counts all the same.
	Node, UID string
	// Keys are what the slot counts for: see [Slot].
	Keys []string
}

// Borrower returns whose loan a slot is. ok is false for the slot of a rollout.
func (s Slot) Borrower() (name, holder string, ok bool) {
	holder, ok = strings.CutPrefix(s.Rollout, borrowed)
	if !ok {
		return "", "", false
	}
	for _, k := range s.Keys {
		if n, found := strings.CutPrefix(k, holderKey); found {
			name = n
		}
	}
	return name, holder, true
}

// Loan returns the slot of a holder, or nil. It is the ledger's own: don't change it.
func (l Ledger) Loan(holder string) *Slot {
	i := slices.IndexFunc(l.Slots, func(s Slot) bool { return s.Rollout == borrowed+holder })
	if i < 0 {
		return nil
	}
	return &l.Slots[i]
}

// Borrow gives a holder a slot, and nothing if he has one. It is refused while the domain is closed, if the node has another slot, or if one of the caps
// would not hold on the new ledger.
func (l Ledger) Borrow(b Loan, caps []Cap, absent []Absent) (Ledger, error) {
	if l.Loan(b.Holder) != nil {
		return l, nil
	}
	if b.Holder == "" || b.Name == "" {
		return l, refuse(EventAdmit, RuleField, "holder is %q and name %q, want neither of them empty", b.Holder, b.Name)
	}
	if b.Node == "" || b.UID == "" {
		b.Node, b.UID = borrowed+b.Holder, borrowed+b.Holder
	}
	if c := l.ClosedFor(""); c != nil {
		return l, refuse(EventAdmit, RuleClosed, "the ledger is closed by %q: %s", c.Request, c.Reason)
	}
	for _, s := range l.Slots {
		if s.UID == b.UID || s.Node == b.Node {
			return l, refuse(EventAdmit, RuleOneSlot, "node %q has a slot, attempt %d", s.Node, s.Attempt)
		}
	}
	next := l.clone()
	next.Epoch++
	keys := sorted(append(slices.Clone(b.Keys), holderKey+b.Name))
	next.Slots = append(next.Slots, Slot{Node: b.Node, UID: b.UID, Attempt: next.Epoch, Rollout: borrowed + b.Holder, Keys: keys})
	if over := next.over(Admission{Shadow: Shadow{Node: b.Node, UID: b.UID}, Keys: keys}, caps, absent); over != nil {
		return l, over
	}
	return next, nil
}

// Return frees the slot of a holder, and takes away what he has closed. Without one nothing changes.
func (l Ledger) Return(holder string) Ledger {
	if l.Loan(holder) != nil {
		l = l.drop(slices.IndexFunc(l.Slots, func(s Slot) bool { return s.Rollout == borrowed+holder }))
	}
	if slices.ContainsFunc(l.Closures, func(c Closure) bool { return c.Scope == "" && c.Request == borrowed+holder }) {
		l = l.Open("", borrowed+holder)
	}
	return l
}

// Default says that a holder has failed: its slot is broken, and counts for the detectors of the rollouts that have the node. If it is critical the whole
// domain is closed until the slot is returned. It is refused without a slot.
func (l Ledger) Default(holder, reason string, critical bool) (Ledger, error) {
	s := l.Loan(holder)
	if s == nil {
		return l, refuse(EventBreak, RuleSlot, "%q has no slot", holder)
	}
	if s.State.rank() < SlotBroken.rank() {
		next, err := l.Mark(s.UID, SlotBroken)
		if err != nil {
			return l, err
		}
		l = next
	}
	if critical {
		l = l.Close(Closure{Request: borrowed + holder, Reason: reason})
	}
	return l, nil
}
