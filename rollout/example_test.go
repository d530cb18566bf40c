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

// A plan says which nodes go now, and why each other one waits. The same call decides in production.
func ExamplePlan() {
	one := intstr.FromInt32(1)
	policy := rollout.Policy{
		UID:       "5f1c",
		Target:    rollout.Revision{Name: "v2", Digest: "sha256:22"},
		Groups:    []rollout.Group{{Name: "workers", Selector: labels.Everything()}},
		Stages:    []rollout.Stage{{Name: "canary", Size: &one, Soak: time.Hour}, {Name: "rest"}},
		Caps:      []rollout.Cap{{Scope: rollout.Total, Max: intstr.FromString("25%")}},
		Detectors: []rollout.Detector{},
	}
	var snapshot rollout.Snapshot
	for _, name := range []string{"node-a", "node-b", "node-c", "node-d"} {
		snapshot.Nodes = append(snapshot.Nodes, rollout.Node{
			Name: name, UID: "uid-" + name, Runs: protocol.Revision{Name: "v1", Digest: "sha256:11"},
			Health: rollout.Verdict{Answer: rollout.Allow},
			Shadow: &protocol.Shadow{Node: name, UID: "uid-" + name, Report: protocol.Report{Known: true}},
		})
	}
	snapshot.Nodes[0].Health = rollout.Verdict{From: "pods", Answer: rollout.Deny, Message: "1 of 2 replicas ready"}

	decisions, err := rollout.Plan(snapshot, policy, time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range decisions.Nodes {
		fmt.Printf("%s %q %s: %s\n", d.Node, d.Do, d.Why.Reason, d.Why.Message)
	}
	fmt.Println(decisions.Phase, decisions.Message)
	// Output:
	// node-b "Admit" NextInOrder: attempt 1 is to bring "v2"
	// node-a "" Unhealthy: pods: 1 of 2 replicas ready
	// node-c "" LaterStage: stage "canary" has as many nodes as it should
	// node-d "" LaterStage: stage "canary" has as many nodes as it should
	// Running 0 of 4 nodes run their revision, 1 in flight, 2 waiting, 1 deferred, 0 failed, 0 broken, 0 lost; stage "canary"; they wait for LaterStage (2), Unhealthy (1)
}
