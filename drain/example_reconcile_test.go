// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// A controller with the shape of controller-runtime: a key in, a time and an error out. What is wanted of a node comes
// from its own object, here a map, and the status goes there. In production it is called by a work queue that
// [drain.Drainer.Watch] fills.
func ExampleDrainer_Reconcile() {
	cluster := draintest.New(draintest.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go cluster.Run(ctx)
	cluster.AddNode("node-1")
	cluster.AddNode("node-2")
	cluster.AddWorkload(draintest.Workload{Namespace: "shop", Name: "web", Replicas: 1, On: []string{"node-1"}})

	settle := 10 * time.Millisecond
	wanted := map[string]drain.Request{
		"node-1": {Holder: "example", Maintenance: "kernel-6.12", Mode: drain.Drain, Policy: drain.Policy{Settle: &settle}},
		"node-9": {Holder: "example", Maintenance: "kernel-6.12", Mode: drain.Drain},
	}
	statuses := map[string]drain.Status{}
	d, err := drain.New(drain.Options{
		Cache: cluster, Client: cluster,
		Requests: func(_ context.Context, node string) (drain.Request, bool, error) {
			r, ok := wanted[node]
			return r, ok, nil
		},
		Report: func(_ context.Context, st drain.Status) error {
			statuses[st.Node] = st
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := make(chan string, 16)
	defer d.Watch(func(node string) {
		select {
		case queue <- node:
		default: // a pass is due anyway
		}
	})()
	for statuses["node-1"].Phase != drain.Drained {
		after, err := d.Reconcile(ctx, "node-1")
		if err != nil {
			fmt.Println(err)
			return
		}
		select {
		case <-queue:
		case <-time.After(after):
		}
	}
	fmt.Println("node-1", statuses["node-1"].Outcome)

	_, err = d.Reconcile(ctx, "node-9")
	fmt.Println(err, errors.Is(err, drain.ErrNodeNotFound))
	// Output:
	// node-1 Drained
	// there is no node "node-9" true
}
