// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import "time"

// ScaleIn returns those of a set's machines that would be deleted if it had this many replicas, by the order in which sets choose. It goes by what the
// machines' own status says, and by no cost: a controller that looks at Nodes and pods may choose others of equal standing. It is pure.
func ScaleIn(machines []Machine, replicas int, order DeleteOrder) []Choice {
	nodes := map[Key]NodeHealth{}
	var all []standing
	alive := 0
	for i := range machines {
		m := &machines[i]
		if m.Node != nil && m.Phase == PhaseRunning {
			nodes[m.Key] = NodeHealth{Conditions: []Condition{{Type: "Ready", Status: "True"}}}
		} else if m.Node != nil {
			nodes[m.Key] = NodeHealth{}
		}
		s := stand(m, nodes, 0, time.Time{})
		all = append(all, s)
		alive += one(!s.deleting())
	}
	gone, _ := picker{order: order}.pick(all, max(alive-max(replicas, 0), 0))
	return gone
}
