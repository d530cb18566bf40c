// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// Run takes nodes through a drain, a few at a time, and gives them back as they were found when its context ends.
func ExampleDrainer_Run() {
	cluster := draintest.New(draintest.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go cluster.Run(ctx)
	cluster.AddNode("node-1")
	cluster.AddNode("node-2")
	cluster.AddWorkload(draintest.Workload{Namespace: "shop", Name: "web", Replicas: 1, On: []string{"node-1"}})

	d, err := drain.New(drain.Options{Cache: cluster, Client: cluster})
	if err != nil {
		fmt.Println(err)
		return
	}
	settle := 10 * time.Millisecond
	done, err := d.Run(ctx, drain.Set{
		Request: drain.Request{Holder: "example", Maintenance: "kernel-6.12", Mode: drain.Drain, Policy: drain.Policy{Settle: &settle}},
		Groups:  [][]string{{"node-1"}},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, node := range done.Nodes {
		fmt.Println(node.Node, node.Outcome, node.Counts.Evicted, "evicted")
	}
	// Output:
	// node-1 Drained 1 evicted
}
