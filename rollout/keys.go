// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import "time"

// Keys are what a slot of the node counts for in a rollout of the policy, besides the total. They are for the slots of a ledger that was
// lost.
func (policy Policy) Keys(n Node) []string {
	policy.Groups = policy.Groups[:min(len(policy.Groups), 1<<groupBits)] // Validate refuses more
	p := newPlan(&Snapshot{Nodes: []Node{n}}, &policy, time.Time{}, &scratch{})
	m := &p.nodes[0]
	of := setOf{group: m.group, zone: m.zone, class: Intrusive, serial: m.serial}
	if m.group >= 0 {
		of.class = p.targets[m.group].target.class()
	}
	return p.keys(of)
}
