// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"fmt"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// A plan says, before anything is done, which pods leave, which stay, and why. The cluster here is in memory; with package drain/kube
// the same code plans for a real one.
func ExamplePlan() {
	cluster := draintest.New(draintest.Options{})
	cluster.AddNode("node-1")
	cluster.AddNode("node-2")
	cluster.AddWorkload(draintest.Workload{Namespace: "shop", Name: "web", Replicas: 2, On: []string{"node-1", "node-2"}})
	cluster.AddBudget(draintest.MinAvailable("shop", "web", "2", map[string]string{"app": "web"}))
	cluster.AddPod("shop", "debug", "node-1")

	d, err := drain.New(drain.Options{Cache: cluster, Client: cluster})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := d.Plan(context.Background(), drain.Policy{}, "node-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, pod := range plan.Nodes[0].Pods {
		fmt.Printf("%s %s: %s\n", pod.Action, pod.Reason, pod.Message)
	}
	// Output:
	// Block Unmanaged: no controller would create it again
	// Block BudgetNeverAllows: budget "web" allows 0 disruptions: 2 of 2 pods healthy, 2 needed; it allows none even with every pod healthy
}
