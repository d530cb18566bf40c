// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"

	"github.com/belayproject/belay/rollout/protocol"
)

// rebornRequest is the request by which the ledger that follows a lost one is closed.
const rebornRequest = "reborn"

// rebornGap is how far a fence is ahead of every attempt that can be seen: more than the lost ledger can have
// admitted beyond them.
const rebornGap = 1 << 32

// ledgerAfterLoss is the ledger that a controller creates where one existed and was lost; shadows are those of the
// domain, as far as they are known. It is closed and empty. What the lost one had admitted is still within its caps,
// and goes on; since a controller may act on the lost one at any time, its attempts have to be revoked on every node,
// up to the fence, before rebuildSlots opens the new one.
func ledgerAfterLoss(shadows []protocol.Shadow) protocol.Ledger {
	var l protocol.Ledger
	for _, sh := range shadows {
		l.Epoch = max(l.Epoch, sh.Orders.Grant, sh.Orders.Revoked, sh.Report.Attempt)
	}
	l.Epoch += rebornGap
	l.Fence = l.Epoch
	const reason = "the ledger was lost: what it had admitted is being looked for"
	return l.Close(protocol.Closure{Request: rebornRequest, Reason: reason})
}

// rebuildSlots gives every node that is disrupted, or may be, a slot in a ledger that was reborn, and opens it. It is
// refused as long as the lost one can still have an effect: waiting names the nodes whose shadow does not revoke
// everything up to the fence. The shadows may be of any age, but must be all of the domain, by a list that the API
// server answered after the ledger was reborn. place says what a node's slot is for and what it counts for.
func rebuildSlots(
	l protocol.Ledger, shadows []protocol.Shadow, place func(protocol.Shadow) (rollout string, keys []string),
) (next protocol.Ledger, waiting []string) {
	for _, sh := range shadows {
		if sh.Orders.Revoked < l.Fence {
			waiting = append(waiting, sh.Node)
		}
	}
	if len(waiting) > 0 || l.Fence == 0 {
		return l, waiting
	}
	next = l
	next.Slots = slices.Clone(l.Slots)
	for _, sh := range shadows {
		if sh.Removable() || next.Slot(sh.UID) != nil {
			continue
		}
		s := protocol.Slot{Node: sh.Node, UID: sh.UID, Attempt: sh.Report.Attempt}
		if s.Rollout, s.Keys = place(sh); sh.Report.Phase.AtRest() {
			// Its agent has not said what it did: the slot has an attempt that is never granted.
			next.Epoch++
			s.Attempt, s.State = next.Epoch, protocol.SlotSuspect
		}
		s.Keys = slices.Clone(s.Keys)
		slices.Sort(s.Keys)
		s.Keys = slices.Compact(s.Keys)
		next.Slots = append(next.Slots, s)
	}
	return next.Open("", rebornRequest), nil
}
