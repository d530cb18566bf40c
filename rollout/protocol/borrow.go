// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strings"
)

// Prefixes of a borrowed slot: that of its Rollout, that of the key that names its holder for people, and that of the key that names the loan.
const (
	borrowed  = "borrowed/"
	holderKey = "holder/"
	loanKey   = "loan/"
)

// A Loan is a slot for somebody who disturbs a node and is no rollout, as a machine that is replaced. It has no shadow: it is taken before the
// node is disturbed, and returned by its holder when that is over.
type Loan struct {
	// Holder is the UID of who disturbs the node, and Name its name.
	Holder, Name string
	// ID tells this loan from others of the holder, earlier and later ones; empty where there is no need.
	ID string
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
	return s.keyed(holderKey), holder, true
}

// LoanID is that of the loan that a slot is; empty if it has none.
func (s Slot) LoanID() string { return s.keyed(loanKey) }

// keyed is the rest of the key with that prefix.
func (s Slot) keyed(prefix string) (rest string) {
	for _, k := range s.Keys {
		if n, found := strings.CutPrefix(k, prefix); found {
			rest = n
		}
	}
	return rest
}

// Loan returns the slot of a holder, or nil. It is the ledger's own: don't change it.
func (l Ledger) Loan(holder string) *Slot {
	i := slices.IndexFunc(l.Slots, func(s Slot) bool { return s.Rollout == borrowed+holder })
	if i < 0 {
		return nil
	}
	return &l.Slots[i]
}

// Borrow gives a holder a slot. If he has one, that becomes this loan, and keeps its node and keys: he has one at a time, and what he had taken before is given
// back by nobody. It is refused while the domain is closed, if the node has another slot, or if one of the caps would not hold on the new ledger.
func (l Ledger) Borrow(b Loan, caps []Cap, absent []Absent) (Ledger, error) {
	if s := l.Loan(b.Holder); s != nil {
		return l.relend(b), nil
	}
	if b.Holder == "" || b.Name == "" {
		return l, refuse(EventAdmit, ruleField, "holder is %q and name %q, want neither of them empty", b.Holder, b.Name)
	}
	if b.Node == "" || b.UID == "" {
		b.Node, b.UID = borrowed+b.Holder, borrowed+b.Holder
	}
	if c := l.ClosedFor(""); c != nil {
		return l, refuse(EventAdmit, ruleClosed, "the ledger is closed by %q: %s", c.Request, c.Reason)
	}
	for _, s := range l.Slots {
		if s.UID == b.UID || s.Node == b.Node {
			return l, refuse(EventAdmit, ruleOneSlot, "node %q has a slot, attempt %d", s.Node, s.Attempt)
		}
	}
	next := l.clone()
	next.Epoch++
	keys := append(slices.Clone(b.Keys), holderKey+b.Name)
	if b.ID != "" {
		keys = append(keys, loanKey+b.ID)
	}
	keys = sorted(keys)
	next.Slots = append(next.Slots, Slot{Node: b.Node, UID: b.UID, Attempt: next.Epoch, Rollout: borrowed + b.Holder, Keys: keys})
	if over := next.over(Admission{Shadow: Shadow{Node: b.Node, UID: b.UID}, Keys: keys}, caps, absent); over != nil {
		return l, over
	}
	return next, nil
}

// relend makes the slot of a holder that of another loan of his.
func (l Ledger) relend(b Loan) Ledger {
	if b.ID == "" || l.Loan(b.Holder).LoanID() == b.ID {
		return l
	}
	next := l.clone()
	next.Epoch++
	s := next.Loan(b.Holder)
	keys := slices.DeleteFunc(slices.Clone(s.Keys), func(k string) bool { return strings.HasPrefix(k, loanKey) })
	s.Keys = sorted(append(keys, loanKey+b.ID))
	return next
}

// Return frees the slot of a holder, and takes away what he has closed. Without one nothing changes, nor where his is another loan than that of the ID: who is late
// with what he gives back does not give back what was taken since. An empty ID is any loan of his.
func (l Ledger) Return(holder, id string) Ledger {
	if s := l.Loan(holder); s != nil && id != "" && s.LoanID() != "" && s.LoanID() != id {
		return l
	}
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
		return l, refuse(EventBreak, ruleSlot, "%q has no slot", holder)
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
