// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleetproof lets a whole fleet live through faults: a real control plane, an agent for each node with a config syncer and its part in rollouts, each
// over a connection of its own, and two controllers that are processes. It holds nothing but tests.
//
//   - Chaos: rollouts of good and fatal configs go on while the API server and etcd are killed and hung, leaders are killed and frozen until another one leads,
//     watches dropped, agents restarted, and nodes leave and join, also under their old names. It goes on until each of that was had.
//   - A proxy cuts connections that are idle for 3 s: watches go on from where they were, and nobody lists.
//   - The API server lets too few requests in at a time: 429s slow the fleet down, and nothing times out into an action.
//
// An auditor reads every version of the ledger, of each Node, of each shadow and of the Rollout from etcd, past the API server, in the order in which they were
// written. After each round it has to have seen the newest one. What is checked, by the numbers of reliability and of the rollout's rules:
//
//   - E21, I1: slots, and cordoned nodes, within the cap; a node that is granted or commits an attempt has the slot of that attempt, one that is
//     disrupted has a slot; a slot is freed when its attempt has ended or its Node is gone.
//   - E16, E22: a node is changed after the word to proceed, and gives an attempt up after the word to undo it.
//   - E23, I2: what is closed admits nothing; no node commits after its rollout has acknowledged that it is stopped; no more nodes break than was said.
//   - E25, I3: a node begins a revision once, and no attempt goes back.
//   - E12, E15: a node is started with a fatal config as often as it is forgiven, twice, and not again after that; none falls back to what it came with.
//   - E18: after each round every node is schedulable, and has no mark. E24: each good config reaches every node.
//   - E19: pods go by evictions that name their UID, as the audit log has it.
//   - E30: an agent stops within 5 s. No controller ends by itself or prints that it is broken, and no agent ends.
//
// What else reliability asks for is looked at elsewhere.
//
// With few nodes it is part of every test run. BELAY_SOAK_NODES and BELAY_SOAK ask for more nodes, and for how long chaos is to last. What is drawn is printed
// as BELAY_SOAK_SEED, which draws the same again.
package fleetproof
