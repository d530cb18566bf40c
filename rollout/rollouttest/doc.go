// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollouttest proves that the rules of package protocol hold, and helps those who write their own ledgers to prove it of theirs.
//
// [Explore] walks every state that a small fleet can reach under any number of controllers, of which each may crash at any line, be frozen
// and thawed, and read any past version of any object. It calls the step functions that production calls: there is no second model. What it
// reports is the number of states and, if a rule is broken, the shortest way there. With [Options].Without one rule of the
// protocol is taken away, and a way to break a cap must be found: an explorer that finds none proves nothing.
//
// A state has every past version that may be read, by what may be done by it: two versions of a shadow by which the same may be done are one, and
// of ledgers the slots count. That loses no state and no move, and a walk ends with an error where it would: on every ledger that was reached, each
// version of a shadow is tried beside the one that stands for it.
//
// # The rules
//
// Thirteen rules are named in messages and tests by their numbers. Explore looks at what of them can be seen in a state of the protocol (s), on a move
// from one to the next (m), or in all ways together, once a world was walked to its end (w):
//
//	I1   s  disrupted nodes have slots; slots are within the cap, and within that of each zone
//	I2   m  no node commits after an abort or a pause was acknowledged
//	I3   m  no epoch and no number of an attempt, an order or a report goes back; a new shadow revokes what was granted before
//	     s  no two nodes have committed the same attempt
//	I4   s  a node that is being changed has committed
//	     m  it was told to proceed, and not to give up
//	I5   m  a closed ledger admits nothing
//	I8   w  from a state that is closed or acknowledged there is a way on as from any other, see I9
//	I9   w  from every state there is a way to rest (Stuck is 0), and to a commit of each node as long as an attempt is left (Starved is 0)
//	I10  w  no step has changed a ledger that it was given
//	I11  m  a slot goes only when its attempt can't be committed any more
//
// The rest of I4, I5, I8, I9, I10 and I11, and all of I6 (order and stages), I7 (one outcome for each node), I12 (simulations) and I13 (windows), is about
// what the protocol does not know of: the planner, drains, cordons, time. Random suites of packages rollout and rollout/controller look at them, and
// some are looked at on a real server. docs/rollout-invariants.md has the table: which tool looks at which rule, and at how much of it.
//
// [Shadows] is a node's shadow in memory, for tests of agents: with conflicts, and with answers that are lost.
//
// # Concurrency and crash behaviour
//
// Explore uses one goroutine and memory in proportion to the states. Nothing is persisted.
package rollouttest
