// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protocol holds the rules by which the nodes of a fleet are disrupted: who may write what, when, and what follows from it.
//
// Nodes that share a fate are a disruption domain, and a domain has one [Ledger]: every permission to disrupt one of its nodes is a
// [Slot] in it. A node has a shadow, whose [Orders] the controller writes and whose [Report] the node's agent. All three are changed by pure
// functions of this package, and stored by compare-and-swap on the object's version. Packages rollout and nodeagent call these
// functions in production; package rollouttest calls the same ones in every order that there is, with every stale read.
//
// An attempt is one permission, numbered by the ledger's epoch. It goes this way, if nothing comes between:
//
//	Admitted -> Granted -> Committed -> Draining -> Proceeding -> Applying -> Verifying -> Done -> released
//
// docs/rollout-protocol.md has the whole table: every state, every event, its guard, its writer. Tests walk it; what it does not list
// is refused with an [Error].
//
// # Promise
//
// For any number of controllers, each of which may crash at any line, read any past version of any object, and be frozen and thawed at will,
// as long as each write is a compare-and-swap on the version that was read for it:
//
//   - A node whose agent has committed has a slot, until it is at rest again. The caps hold on every version of the ledger, and so on the nodes
//     that are disrupted at any moment.
//   - After an abort or pause was acknowledged, no node of its scope commits ([Acknowledged]).
//   - An attempt is committed at most once, whatever restarts. Attempt numbers only grow.
//   - A controller that drains does so after the commit; a node whose agent is dead is never drained.
//   - A slot is freed by a fact that cannot become false again, never by time.
//   - A shadow that was deleted by hand, and a ledger that was, cost capacity, and break no cap.
//
// # No promise
//
// Caps bind what this protocol disrupts. Nodes that are away for other reasons count as of the last look ([Absent]). An agent that lies about
// its node is believed: that it can lie about no other is what package identity/nodeauth is for. Nothing here has a deadline: a node
// that never answers keeps its slot until somebody who knows says otherwise ([Ledger.Acknowledge]), or its Node is gone.
//
// # Concurrency
//
// All functions are pure: they change none of their arguments and share no state. The version that belongs to a value is the caller's to keep.
//
// # Crash behaviour
//
// The order of writes makes every crash harmless. A slot is stored before its grant, and freed after its end is reported: a crash
// in between leaves a slot too many, which the next pass uses or frees.
package protocol
