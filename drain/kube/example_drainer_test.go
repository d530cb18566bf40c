// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// ExampleDrainNode empties a node and gives it back, as "kubectl drain" and "kubectl uncordon" do. TestDrainNode runs the same calls on an
// API server.
func ExampleDrainNode() {
	config, err := rest.InClusterConfig()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	options := kube.DrainOptions{Holder: "kernel-upgrade", Policy: drain.Policy{LocalData: drain.EvictPods}}
	if _, err := kube.DrainNode(ctx, config, "node-1", options); err != nil {
		fmt.Println(err)
		return
	}
	// the work on the machine
	if _, err := kube.ReleaseNode(ctx, config, "node-1", options); err != nil {
		fmt.Println(err)
	}
}

// ExampleOpen prints what a drain would do, and why.
func ExampleOpen() {
	config, err := rest.InClusterConfig()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, err := kube.Open(ctx, config, kube.OpenOptions{Cache: kube.CacheOptions{DaemonSets: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	plan, err := d.Plan(ctx, drain.Policy{}, "node-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, pod := range plan.Nodes[0].Pods {
		fmt.Println(pod.PodRef, pod.Action, pod.Reason, pod.Message)
	}
}
