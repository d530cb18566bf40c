// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollouttest proves that the rules of package protocol hold, and helps those who write their own ledgers to prove it of theirs.
//
// [Explore] walks every state that a small fleet can reach under any number of controllers, of which each may crash at any line, be frozen
// and thawed, and read any past version of any object. It calls the step functions that production calls: there is no second model. What it
// reports is the number of states and, if a rule is broken, the shortest way there. With [Options].Without one rule of the
// protocol is taken away, and a way to break a cap must be found: an explorer that finds none proves nothing.
//
// [Shadows] is a node's shadow in memory, for tests of agents: with conflicts, and with answers that are lost.
//
// # Concurrency and crash behaviour
//
// Explore uses one goroutine and memory in proportion to the states. Nothing is persisted.
package rollouttest
