// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollouttest proves that the rules of package protocol hold, and helps those who write their own ledgers to prove it of theirs.
//
// [Explore] walks every state that a small fleet can reach under any number of controllers, of which each may crash at any line, be frozen
// and thawed, and read any past version of any object. It calls the step functions that production calls: there is no second model. What it
// reports is the number of states and, if a rule is broken, the shortest way there. With [Options].Without one rule of the
// protocol is taken away, and a way to break a cap must be found: an explorer that finds none proves nothing.
//
// # The rules
//
// Thirteen rules are named in messages and tests by their numbers. In every state, Explore looks at
//
//	I1   the nodes that are disrupted are among the slots, and no more than the cap
//	I2   no node commits after an abort was acknowledged
//	I3   no epoch and no number of an attempt goes back; an attempt is committed once
//	I5   a closed ledger admits nothing
//	I8   an abort and its end take nothing away: a world with both breaks no rule, and
//	I9   from every state there is a way to rest (Stuck is 0)
//
// The others are about what the protocol does not know of. Random rollouts of package rollout look at them in every pass: I5 a freeze closes the ledger
// before anything is begun, I6 order and stages, I7 one outcome for each node and counts that add up, I10 the same decisions for the same input,
// I11 caps that shrink take no slot, I12 a simulation that comes true, I13 windows. I4, that nothing is disrupted without a commit and nothing
// given back that others have cordoned, is looked at by the cluster of package controllertest at every write.
//
// [Shadows] is a node's shadow in memory, for tests of agents: with conflicts, and with answers that are lost.
//
// # Concurrency and crash behaviour
//
// Explore uses one goroutine and memory in proportion to the states. Nothing is persisted.
package rollouttest
