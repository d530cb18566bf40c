// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// A Kind is how a cell of the map looks: in which of the counts of its rollout the node is.
type Kind string

// Kinds.
const (
	Done     Kind = "done"
	InFlight Kind = "flight"
	Waiting  Kind = "waiting"
	Deferred Kind = "deferred"
	Failed   Kind = "failed"
	Broken   Kind = "broken"
	Lost     Kind = "lost"
	// Outside is in no rollout.
	Outside Kind = "outside"
)

// kindOf goes by the ledger as it is, not as it would be decided: a node that is to have its turn next is not in flight.
func kindOf(v *view.Rollout, d *rollout.Decision) Kind {
	slot := v.Snapshot.Ledger.Slot(d.UID)
	if slot != nil && slot.Rollout == v.Policy.UID {
		return aloft(slot, d)
	}
	reason := rollout.ReasonNone
	if d.Why != nil {
		reason = d.Why.Reason
	}
	retried := v.Snapshot.Progress.Nodes[d.UID].Attempts > 0
	switch reason {
	case rollout.ReasonUpToDate:
		return Done
	case rollout.ReasonLost:
		return Lost
	case rollout.ReasonInFlight: // it may be disrupted, and the ledger was read before its record
		return InFlight
	case rollout.ReasonNoAgent, rollout.ReasonAway, rollout.ReasonUnhealthy:
		return Deferred
	case rollout.ReasonGivenUp:
		return Failed
	case rollout.ReasonBackOff:
		if !retried {
			return Deferred
		}
	case rollout.ReasonOther:
		if slot == nil { // it belongs to another rollout, which is not at work on it
			return Deferred
		}
		return Waiting
	}
	if retried {
		return Failed
	}
	return Waiting
}

// aloft is the kind of a node that has a slot.
func aloft(slot *protocol.Slot, d *rollout.Decision) Kind {
	if slot.State != "" || d.State == protocol.FailedBroken {
		return Broken
	}
	return InFlight
}
