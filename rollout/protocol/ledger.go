// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
)

// An Attempt numbers one permission to disrupt one node. It is the epoch that the ledger of the domain reached with it: it only grows, and is
// never used twice.
type Attempt int64

// A Ledger says who may disrupt which node of a domain. It is the one object on which caps are decided, so it is written only by
// compare-and-swap on its version. The zero Ledger is open and empty.
type Ledger struct {
	// Epoch is the last attempt that was admitted.
	Epoch Attempt `json:"epoch"`
	// Fence: attempts up to it were admitted by a ledger that is lost: the controller of package rollout/controller makes
	// one anew.
	Fence Attempt `json:"fence,omitempty"`
	// Closures say what may not be admitted.
	Closures []Closure `json:"closures,omitempty"`
	// Slots are the nodes that may be disrupted, or that are broken, in the order of their admission.
	Slots []Slot `json:"slots,omitempty"`
}

// A Closure keeps further attempts of a scope from being admitted.
type Closure struct {
	// Scope is the rollout's UID, or empty for the whole domain.
	Scope string `json:"scope,omitempty"`
	// Request is the ID of the request by which the scope was closed, or the name of the detector that did it.
	Request string `json:"request"`
	// Reason says it in words.
	Reason string `json:"reason,omitempty"`
}

// A Slot is the place of one node in the ledger.
type Slot struct {
	// Node and UID name one incarnation of a Node.
	Node string `json:"node"`
	UID  string `json:"uid"`
	// Attempt is the permission that the slot stands for.
	Attempt Attempt `json:"attempt"`
	// Rollout is the UID of the rollout that it was admitted for.
	Rollout string `json:"rollout"`
	// Keys are what else than the total the slot counts for, for example "zone/a" or "class/reboot", each once.
	Keys []string `json:"keys,omitempty"`
	// State is empty as long as all goes well.
	State SlotState `json:"state,omitempty"`
}

// A SlotState says what the controllers think of a slot that does not go well. It never frees a slot.
type SlotState string

// States of slots.
const (
	// SlotSuspect is a node that has not ended a phase within its deadline, by the controller's clock. It counts as a failure, once.
	SlotSuspect SlotState = "Suspect"
	// SlotBroken is a node that has failed, by its own report or because its work did not come back.
	SlotBroken SlotState = "Broken"
	// SlotQuarantined is a broken node whose failure somebody has accepted. It goes on using capacity until it is acknowledged as lost,
	// is at rest again, or is gone.
	SlotQuarantined SlotState = "Quarantined"
)

// An Admission asks for a slot.
type Admission struct {
	// Shadow is the node's, in any version.
	Shadow Shadow
	// Rollout is the UID of the rollout that asks.
	Rollout string
	// Keys are what the slot counts for: see [Slot].
	Keys []string
}

// Slot returns the slot of a node, by UID, or nil. It is the ledger's own: don't change it.
func (l Ledger) Slot(uid string) *Slot {
	for i := range l.Slots {
		if l.Slots[i].UID == uid {
			return &l.Slots[i]
		}
	}
	return nil
}

// ClosedFor returns what keeps attempts of a rollout from being admitted, or nil.
func (l Ledger) ClosedFor(rollout string) *Closure {
	for i := range l.Closures {
		if c := &l.Closures[i]; c.Scope == "" || c.Scope == rollout {
			return c
		}
	}
	return nil
}

// Admit gives a node a slot with the next attempt. It is refused while the scope is closed, if the node has a slot already, is not at rest or has
// never been heard of, or if one of the caps would not hold on the new ledger. The caps of everybody who uses the domain have to be
// among them.
func (l Ledger) Admit(a Admission, caps []Cap, absent []Absent) (Ledger, error) {
	d := l.Draft()
	if err := d.Admit(a, caps, absent); err != nil {
		return l, err
	}
	return d.Ledger, nil
}

// Retry gives a node that has a slot its next attempt, for the same rollout or another one, in the same place: no cap is touched. It is
// refused while the scope is closed, and unless some version of the shadow shows that the attempt before was answered or revoked; one that was
// committed has to have been told to proceed or to be given up, as nobody would tell it any more. The node commits the next one only when it
// has ended the attempt before, or is broken by it.
func (l Ledger) Retry(sh Shadow, rollout string) (Ledger, error) {
	i, err := l.decided(EventRetry, sh)
	if err != nil {
		return l, err
	}
	if k := l.Slots[i].Attempt; sh.waiting(EventRetry, k) == nil && sh.Orders.Proceed < k && sh.Orders.Undo < k {
		return l, refuse(EventRetry, ruleOrdered, "attempt %d of node %q has neither been told to proceed nor to be undone", k, sh.Node)
	}
	if c := l.ClosedFor(rollout); c != nil {
		return l, refuse(EventRetry, ruleClosed, "the ledger is closed by %q: %s", c.Request, c.Reason)
	}
	next := l.clone()
	next.Epoch++
	next.Slots[i].Attempt, next.Slots[i].Rollout = next.Epoch, rollout
	return next, nil
}

// decided finds the slot of the shadow's node, if its attempt cannot be committed any more than it is.
func (l Ledger) decided(event Event, sh Shadow) (int, error) {
	i := l.index(sh.UID)
	if i < 0 {
		return i, refuse(event, ruleSlot, "node %q has no slot", sh.Node)
	}
	if k := l.Slots[i].Attempt; sh.Report.Attempt < k && sh.Orders.Revoked < k {
		return i, refuse(event, ruleAnswered, "attempt %d of node %q is neither answered nor revoked", k, sh.Node)
	}
	return i, nil
}

// Mark says what is thought of a node that has a slot. Marks only get worse: an empty state, or one that is better than the one before, is
// refused. A retry does not take them away.
func (l Ledger) Mark(uid string, state SlotState) (Ledger, error) {
	i := l.index(uid)
	if i < 0 {
		return l, refuse(EventSuspect, ruleSlot, "node with UID %q has no slot", uid)
	}
	if state.rank() <= l.Slots[i].State.rank() {
		return l, refuse(EventSuspect, ruleWorse, "the slot of node %q is %q, %q is not worse", l.Slots[i].Node, l.Slots[i].State, state)
	}
	next := l.clone()
	next.Slots[i].State = state
	return next, nil
}

func (s SlotState) rank() int {
	return slices.Index([]SlotState{"", SlotSuspect, SlotBroken, SlotQuarantined}, s)
}

// Release frees the slot of a node by a fact: its shadow, in any version, shows that the slot's attempt has ended, or was revoked before it began
// and that the node is at rest.
func (l Ledger) Release(sh Shadow) (Ledger, error) {
	i, err := l.ended(sh)
	if err != nil {
		return l, err
	}
	return l.drop(i), nil
}

// ended finds the slot of the shadow's node, if the attempt that it stands for has ended.
func (l Ledger) ended(sh Shadow) (int, error) {
	i := l.index(sh.UID)
	if i < 0 {
		return i, refuse(EventRelease, ruleSlot, "node %q has no slot", sh.Node)
	}
	if err := sh.ended(l.Slots[i].Attempt); err != nil {
		return i, err
	}
	return i, nil
}

// Gone frees the slot of a node that does not exist any more: the caller has asked the API server, and was told that there is no Node of
// that UID.
func (l Ledger) Gone(uid string) (Ledger, error) {
	i := l.index(uid)
	if i < 0 {
		return l, refuse(EventGone, ruleSlot, "node with UID %q has no slot", uid)
	}
	return l.drop(i), nil
}

// Acknowledge frees the slot of a suspect or broken node: somebody has said that its capacity is lost and must not hold up the others. Whatever
// the node does from then on in the attempt at hand, it does outside the caps; it gets no other one before it is at rest. One that was committed
// and not yet told to proceed waits for a word that does not come any more, until its Node is gone or its shadow is deleted. It is refused
// unless some version of the shadow shows that the attempt was answered or revoked.
func (l Ledger) Acknowledge(sh Shadow) (Ledger, error) {
	i, err := l.decided(eventAcknowledge, sh)
	if err != nil {
		return l, err
	}
	if l.Slots[i].State == "" {
		return l, refuse(eventAcknowledge, ruleBroken, "node %q is neither suspect nor broken", l.Slots[i].Node)
	}
	return l.drop(i), nil
}

// Close keeps attempts of a scope from being admitted. Closing what the same request has closed changes nothing.
func (l Ledger) Close(c Closure) Ledger {
	if slices.ContainsFunc(l.Closures, func(o Closure) bool { return o.Scope == c.Scope && o.Request == c.Request }) {
		return l
	}
	next := l.clone()
	next.Closures = append(next.Closures, c)
	return next
}

// Open takes away what the request has closed in a scope. What others have closed stays closed.
func (l Ledger) Open(scope, request string) Ledger {
	next := l.clone()
	next.Closures = slices.DeleteFunc(next.Closures, func(c Closure) bool { return c.Scope == scope && c.Request == request })
	return next
}

func (l Ledger) index(uid string) int {
	return slices.IndexFunc(l.Slots, func(s Slot) bool { return s.UID == uid })
}

func (l Ledger) drop(i int) Ledger {
	next := l.clone()
	next.Slots = slices.Delete(next.Slots, i, i+1)
	return next
}

// clone copies what the functions here change; Keys are never changed.
func (l Ledger) clone() Ledger {
	return Ledger{Epoch: l.Epoch, Fence: l.Fence, Closures: slices.Clone(l.Closures), Slots: slices.Clone(l.Slots)}
}

func sorted(keys []string) []string {
	out := slices.Clone(keys)
	slices.Sort(out)
	return slices.Compact(out)
}
