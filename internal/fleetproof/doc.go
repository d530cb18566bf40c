// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleetproof lets a whole fleet live through faults: a real control plane, an agent for each node with a config syncer and its part in rollouts, each
// over a connection of its own, and two controllers that are processes. It holds nothing but tests.
//
//   - Chaos: rollouts of good and fatal configs go on while the API server, etcd and the leader are killed, leaders are frozen, watches dropped, agents
//     restarted, and nodes leave and join.
//   - A proxy cuts connections that are idle for 3 s: watches go on from where they were, and nobody lists.
//   - The API server lets too few requests in at a time: 429s slow the fleet down, and nothing times out into an action.
//
// An auditor reads every version of the ledger, of each Node and of each shadow from etcd, past the API server, and checks the caps, that a node begins
// a revision once, and that no attempt goes back.
//
// With few nodes it is part of every test run. BELAY_SOAK_NODES and BELAY_SOAK ask for more nodes, and for how long chaos is to last. What is drawn is printed
// as BELAY_SOAK_SEED, which draws the same again.
package fleetproof
