// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
)

// A Shadow is the part of a node's record that the protocol speaks of. Orders and Report lie in one object with one version: to read both is
// to read them as of one moment.
type Shadow struct {
	// Node and UID name the incarnation of the Node that the shadow belongs to.
	Node, UID string
	Orders    Orders
	Report    Report
}

// Orders are what the controllers ask of a node. The numbers never get smaller.
type Orders struct {
	// Stage is the revision that the agent may fetch ahead, without any disruption.
	Stage string `json:"stage,omitempty"`
	// Revision is what the granted attempt is to bring the node to. It changes only together with Grant.
	Revision string `json:"revision,omitempty"`
	// Revert says that the granted attempt goes back to Revision, which the node has run before.
	Revert bool `json:"revert,omitempty"`
	// Grant is the last attempt that the node may commit.
	Grant Attempt `json:"grant,omitempty"`
	// Revoked: no attempt up to it may be committed any more.
	Revoked Attempt `json:"revoked,omitempty"`
	// Proceed is the last attempt for which the node is empty, as far as its class asks for that.
	Proceed Attempt `json:"proceed,omitempty"`
	// Undo is the last attempt that the node should give up, if it has not begun to apply it.
	Undo Attempt `json:"undo,omitempty"`
}

// A Report is what the agent says of its node. Only the agent writes it.
type Report struct {
	// Staged is the revision that the agent has fetched ahead.
	Staged string `json:"staged,omitempty"`
	// Attempt is the last attempt that the agent has committed or refused; it never gets smaller.
	Attempt Attempt `json:"attempt,omitempty"`
	// Phase is how far that attempt is.
	Phase Phase `json:"phase,omitempty"`
	// Revision is what that attempt brings, as it was ordered at the time of the commit.
	Revision string `json:"revision,omitempty"`
	// Broken says that the node was broken when the attempt was committed: to give it up leaves it so.
	Broken bool `json:"broken,omitempty"`
	// Known says that the agent has written this report, from its own disk. Until then nobody knows what became of the attempts that a shadow
	// of this node had before.
	Known bool `json:"known,omitempty"`
}

// A Phase is how far the agent is with an attempt.
type Phase string

// Phases of an attempt, as the agent reports them.
const (
	// PhaseRefused: the agent has declined; nothing was touched.
	PhaseRefused Phase = "Refused"
	// PhaseCommitted: the node may be disrupted from now on. The agent waits for [Orders].Proceed.
	PhaseCommitted Phase = "Committed"
	// PhaseUndone: the agent has given the attempt up before it applied anything.
	PhaseUndone Phase = "Undone"
	// PhaseApplying: the intent is on the node's disk; from here on the node is being changed, or may have been.
	PhaseApplying Phase = "Applying"
	// PhaseVerifying: the node runs the revision, and is watched.
	PhaseVerifying Phase = "Verifying"
	// PhaseDone: the node runs the revision and all checks of the agent have passed.
	PhaseDone Phase = "Done"
	// PhaseFailedClean: the node runs what it ran before, and well.
	PhaseFailedClean Phase = "FailedClean"
	// PhaseFailedBroken: the node runs neither well.
	PhaseFailedBroken Phase = "FailedBroken"
)

// AtRest reports whether a node in this phase is not disrupted: it was not touched, or it is well again.
func (p Phase) AtRest() bool {
	return slices.Contains([]Phase{"", PhaseRefused, PhaseUndone, PhaseDone, PhaseFailedClean}, p)
}

// NewShadow is the shadow that a controller creates for a Node that has none. The ledger must have been read from the API server after the
// shadow was seen to be missing: no attempt that it has admitted before can be committed on the new one.
func NewShadow(node, uid string, l Ledger) Shadow {
	return Shadow{Node: node, UID: uid, Orders: Orders{Revoked: l.Epoch}}
}

// Removable reports whether the shadow may be deleted while its Node lives: its node is at rest and has been granted nothing.
func (sh Shadow) Removable() bool {
	return sh.Report.Known && sh.Report.Phase.AtRest() && !sh.Open()
}

// Open reports whether there is a grant that the agent may still commit.
func (sh Shadow) Open() bool {
	return sh.Orders.Grant > sh.Report.Attempt && sh.Orders.Grant > sh.Orders.Revoked
}

// ended returns nil if this version of the shadow proves that attempt k will not disrupt the node, now or later.
func (sh Shadow) ended(k Attempt) error {
	r := sh.Report
	switch {
	case !r.Known:
		return refuse(EventRelease, ruleKnown, "the shadow of node %q is a new one, and its agent has not said yet what it did before", sh.Node)
	case !r.Phase.AtRest():
		return refuse(EventRelease, ruleAtRest, "node %q is %s in attempt %d", sh.Node, r.Phase, r.Attempt)
	case r.Attempt >= k, sh.Orders.Revoked >= k:
		return nil
	}
	return refuse(EventRelease, ruleEnded, "attempt %d of node %q has neither ended nor been revoked", k, sh.Node)
}
