// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
)

// bigCluster is one node with 30 pods of a cluster of 1,000 such nodes: an app of 10 pods has a budget, 100 apps share a namespace, and
// the snapshot has the budgets of all 3,000 apps.
func bigCluster() *planCase {
	c := newPlanCase()
	for app := range 3000 {
		b := planBudget(fmt.Sprint("app-", app), 9, 10, 10)
		b.Namespace = fmt.Sprint("ns-", app/100)
		c.addBudgets(b)
	}
	var pods []*corev1.Pod
	for i := range 30 {
		app := i * 97
		pods = append(pods, planPod(fmt.Sprint("pod-", i), inNamespace(fmt.Sprint("ns-", app/100)), ofApp(fmt.Sprint("app-", app))))
	}
	c.Nodes[0].Pods = pods
	c.policy.Rules = []drain.Rule{tierOf("db", 1), {OwnerKinds: []string{"StatefulSet"}, Tier: 2}}
	return c
}

func BenchmarkPlan(b *testing.B) {
	c := bigCluster()
	b.Run("budgets=3000", func(b *testing.B) { benchmarkPlan(b, c) })
	// What a Drainer gives: the budgets of the namespaces that have pods on the node; here there are few.
	few := bigCluster()
	few.Budgets = few.Budgets[:100]
	for _, p := range few.Nodes[0].Pods {
		p.Namespace = "ns-0"
	}
	b.Run("budgets=100", func(b *testing.B) { benchmarkPlan(b, few) })
}

func benchmarkPlan(b *testing.B, c *planCase) {
	b.ReportAllocs()
	for b.Loop() {
		if r := c.plan(); r.Nodes[0].Counts.Remaining != 30 {
			b.Fatalf("got %+v, want 30 pods", r.Nodes[0].Counts)
		}
	}
}

// A plan looks at thousands of budgets and keeps the few that its pods meet: about two allocations for each of those.
func TestPlanAllocatesLittle(t *testing.T) {
	c := bigCluster()
	if got := testing.AllocsPerRun(10, func() { c.plan() }); got > 150 {
		t.Errorf("got %.0f allocations for 30 pods under 30 of 3000 budgets, want at most 150", got)
	}
}
