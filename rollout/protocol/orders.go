// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Give grants the attempt of a slot: from then on the agent may commit it. The slot may have been read at any time, the shadow is the version
// that the orders are written on.
func (sh Shadow) Give(s Slot, revision string, revert bool) (Orders, error) {
	o, k := sh.Orders, s.Attempt
	switch {
	case s.UID != sh.UID:
		return o, refuse(EventGrant, ruleUID, "the slot is of the Node with UID %q, the shadow of %q", s.UID, sh.UID)
	case k <= o.Revoked:
		return o, refuse(EventGrant, ruleRevoked, "attempt %d of node %q is revoked, up to %d", k, sh.Node, o.Revoked)
	case k <= sh.Report.Attempt, k <= o.Grant:
		return o, refuse(EventGrant, ruleGrows, "attempt %d of node %q was granted before, up to %d", k, sh.Node, max(sh.Report.Attempt, o.Grant))
	case revision == "":
		return o, refuse(EventGrant, ruleRevision, "attempt %d of node %q names no revision", k, sh.Node)
	}
	o.Grant, o.Revision, o.Revert = k, revision, revert
	return o, nil
}

// Prefetch tells the agent what it may fetch ahead. An empty revision takes that back.
func (sh Shadow) Prefetch(revision string) (Orders, error) {
	o := sh.Orders
	if o.Stage == revision {
		return o, refuse(EventStage, ruleOnce, "node %q was told to stage %q", sh.Node, revision)
	}
	o.Stage = revision
	return o, nil
}

// Revoke takes back every attempt up to k, unless the agent has committed k or a later one.
func (sh Shadow) Revoke(k Attempt) (Orders, error) {
	o := sh.Orders
	switch {
	case sh.Report.Attempt >= k:
		return o, refuse(EventRevoke, ruleUncommitted, "node %q has answered attempt %d with %s", sh.Node, sh.Report.Attempt, sh.Report.Phase)
	case o.Revoked >= k:
		return o, refuse(EventRevoke, ruleGrows, "attempt %d of node %q is revoked already", k, sh.Node)
	}
	o.Revoked = k
	return o, nil
}

// Go tells the agent that the node is empty, as far as its class asks for that: it may apply attempt k.
func (sh Shadow) Go(k Attempt) (Orders, error) {
	o := sh.Orders
	if err := sh.waiting(EventProceed, k); err != nil {
		return o, err
	}
	if o.Proceed >= k || o.Undo >= k {
		return o, refuse(EventProceed, ruleOnce, "attempt %d of node %q was told to proceed up to %d, and to be undone up to %d", k, sh.Node, o.Proceed, o.Undo)
	}
	o.Proceed = k
	return o, nil
}

// Stop tells the agent to give attempt k up. That is possible as long as it has not been told to proceed.
func (sh Shadow) Stop(k Attempt) (Orders, error) {
	o := sh.Orders
	if err := sh.waiting(EventUndo, k); err != nil {
		return o, err
	}
	if o.Proceed >= k || o.Undo >= k {
		return o, refuse(EventUndo, ruleOnce, "attempt %d of node %q was told to proceed up to %d, and to be undone up to %d", k, sh.Node, o.Proceed, o.Undo)
	}
	o.Undo = k
	return o, nil
}

// waiting returns nil if the agent has committed attempt k and done nothing yet.
func (sh Shadow) waiting(event Event, k Attempt) error {
	if sh.Report.Attempt != k || sh.Report.Phase != PhaseCommitted {
		return refuse(event, ruleCommitted, "node %q is at attempt %d, %s, want %d, Committed", sh.Node, sh.Report.Attempt, sh.Report.Phase, k)
	}
	return nil
}

// Events of controllers, and of the people behind them.
const (
	EventStage       Event = "Stage"       // orders: fetch ahead
	EventAdmit       Event = "Admit"       // ledger: a slot
	EventGrant       Event = "Grant"       // orders: the slot's attempt may be committed
	EventRevoke      Event = "Revoke"      // orders: it may not any more
	EventProceed     Event = "Proceed"     // orders: the node is empty
	EventUndo        Event = "Undo"        // orders: give it up
	EventSuspect     Event = "Suspect"     // ledger: a deadline has passed
	EventBreak       Event = "Break"       // ledger: the node has failed
	EventRetry       Event = "Retry"       // ledger: the next attempt in the same place
	EventRelease     Event = "Release"     // ledger: the slot is free, by a fact
	eventAcknowledge Event = "Acknowledge" // ledger: the slot is free, by somebody's word
	EventGone        Event = "Gone"        // ledger: the slot is free, there is no such Node any more
)

// Acknowledged reports whether an abort or a pause of a scope is complete: the ledger is closed for it, and of every slot of the scope some
// version of its shadow shows that its attempt is revoked or was answered. From then on no node of the scope commits until it is opened
// again. The shadows may be of any age; those that are missing are not acknowledged. waiting names the nodes that are.
func Acknowledged(l Ledger, rollout string, shadows func(uid string) (Shadow, bool)) (ok bool, waiting []string) {
	for _, s := range l.Slots {
		if rollout != "" && s.Rollout != rollout {
			continue
		}
		var sh Shadow
		found := false
		if shadows != nil {
			sh, found = shadows(s.UID)
		}
		if !found || sh.Orders.Revoked < s.Attempt && sh.Report.Attempt < s.Attempt {
			waiting = append(waiting, s.Node)
		}
	}
	return l.ClosedFor(rollout) != nil && len(waiting) == 0, waiting
}
