// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllertest is a cluster in memory for tests of rollout controllers: Nodes, shadows, rollouts, a ledger, pods, a drainer, and agents
// that speak the protocol.
//
// [Cluster.Connect] gives a controller its own access, as its own process would have it: its lists may be behind by any number of
// writes, and a function is called before and after each of its writes, which may end the goroutine or hold it up. The cluster itself watches
// over what must be true of every history, and [Cluster.Broken] says what was not:
//
//   - every version of the ledger holds the caps of the test;
//   - a node that is not at rest has a slot, and nothing is evicted from any other one;
//   - a slot is freed when its node was given back;
//   - an agent commits under a slot of its attempt, and nothing is applied twice on a node for one attempt.
//
// # Concurrency and crash behaviour
//
// All methods may be called from several goroutines. Nothing is persisted.
package controllertest
