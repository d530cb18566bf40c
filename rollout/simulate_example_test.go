// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// Before it is begun, a rollout can be played ahead: when each node has its turn, what holds it up, and that it will not come to its end, because of which
// node.
func ExampleSimulate() {
	two := intstr.FromInt32(2)
	policy := rollout.Policy{
		UID:    "5f1c",
		Target: rollout.Revision{Name: "v2", Digest: "sha256:22"},
		Groups: []rollout.Group{{Name: "workers", Selector: labels.Everything()}},
		Stages: []rollout.Stage{{Name: "canary", Size: &two, Soak: time.Hour}, {Name: "rest"}},
		Caps:   []rollout.Cap{{Scope: rollout.Total, Max: two}},
		// Nodes are begun from 22:00 to 23:30 on weekdays.
		Windows: []rollout.Window{{
			Days: []time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday}, Open: 22 * time.Hour, Close: 23*time.Hour + 30*time.Minute,
		}},
	}
	var snapshot rollout.Snapshot
	for i := range 7 {
		name := fmt.Sprintf("node-%d", i)
		snapshot.Nodes = append(snapshot.Nodes, rollout.Node{
			Name: name, UID: "uid-" + name, Runs: protocol.Revision{Name: "v1", Digest: "sha256:11"},
			Health: rollout.Verdict{Answer: rollout.Allow},
			Shadow: &protocol.Shadow{Node: name, UID: "uid-" + name, Report: protocol.Report{Known: true}},
		})
	}
	snapshot.Nodes[6].Away = "not ready since Friday"

	friday := time.Date(2026, 3, 6, 20, 0, 0, 0, time.UTC)
	s, err := rollout.Simulate(snapshot, policy, friday, rollout.Assumptions{Cycle: 15 * time.Minute, WorstCycle: 40 * time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, turn := range s.Expected.Turns {
		fmt.Printf("%s %s to %s, after it has waited for", turn.Node, turn.Begin.Format("Mon 15:04"), turn.End.Format("15:04"))
		for _, w := range turn.Waits {
			fmt.Printf(" %s (%s)", w.Reason, w.For)
		}
		fmt.Println()
	}
	for _, left := range s.Expected.Left {
		fmt.Printf("%s is left: %s\n", left.Node, left.Why.Message)
	}
	fmt.Println("expected:", s.Expected.Ending, s.Expected.End.Format("Mon 15:04"))
	fmt.Println("at worst:", s.Worst.Ending, s.Worst.End.Format("Mon 15:04"))
	fmt.Println(s.Blast)
	// Output:
	// node-0 Fri 22:00 to 22:15, after it has waited for WindowClosed (2h0m0s)
	// node-1 Fri 22:15 to 22:30, after it has waited for WindowClosed (2h0m0s) Cap (15m0s)
	// node-2 Mon 22:00 to 22:15, after it has waited for WindowClosed (72h30m0s) Cap (15m0s) LaterStage (15m0s) Soak (1h0m0s)
	// node-3 Mon 22:15 to 22:30, after it has waited for WindowClosed (72h30m0s) Cap (30m0s) LaterStage (15m0s) Soak (1h0m0s)
	// node-4 Mon 22:30 to 22:45, after it has waited for WindowClosed (72h30m0s) Cap (45m0s) LaterStage (15m0s) Soak (1h0m0s)
	// node-5 Mon 22:45 to 23:00, after it has waited for WindowClosed (72h30m0s) Cap (1h0m0s) LaterStage (15m0s) Soak (1h0m0s)
	// node-6 is left: not ready since Friday
	// expected: Stalled Mon 23:00
	// at worst: Stalled Tue 23:20
	// a fatal revision can break 5 of 7 nodes before it is stopped in stage "rest": detector "CUSUM of 1% against 10% failures, limit 9.2" trips at failure 4
}
