// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
	"github.com/belayproject/belay/drain/maintenance"
	"github.com/belayproject/belay/drain/v1alpha1"
	"github.com/belayproject/belay/internal/backoff"
)

// A controller gives the Reconciler its Drainer and cache. On a cluster the client is that of NewClient, and cache
// and client of the Drainer are those of drain/kube.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cluster := draintest.New(draintest.Options{})
	go cluster.Run(ctx)
	cluster.AddNode("worker-7")
	store := &objects{power: &power{}, all: map[string]*v1alpha1.NodeMaintenance{}}
	o := &v1alpha1.NodeMaintenance{Spec: v1alpha1.NodeMaintenanceSpec{NodeName: "worker-7", Mode: "Drain"}}
	o.Name, o.UID = "disk", "4f1c"
	store.put(o)

	drainer, err := drain.New(drain.Options{Cache: cluster, Client: cluster})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := maintenance.New(maintenance.Options{Client: store, Drainer: drainer, Cache: cluster})
	if err != nil {
		fmt.Println(err)
		return
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(running) }()
	for ctx.Err() == nil {
		if o, err := store.get("disk"); err == nil && o.Status.Phase == v1alpha1.PhaseReady {
			fmt.Println(o.Status.Phase, o.Status.Message)
			break
		}
		backoff.Sleep(ctx, 10*time.Millisecond)
	}
	stop()
	fmt.Println(<-done)
	// Output:
	// Ready 1 of 1 nodes are ready
	// <nil>
}
