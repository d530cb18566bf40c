// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// manage brings the machines of a namespace to what they are declared to be, until ctx ends. objects is a client of the API server that has the machines,
// workload one of the cluster that they join. d is a drain.NodeDrainer.
func manage(ctx context.Context, objects dynamic.Interface, workload kubernetes.Interface, p provider.Provider, d controller.Drainer) error {
	factory := informers.NewSharedInformerFactory(workload, 0)
	nodes, err := kube.NewNodes(workload, factory, nil)
	if err != nil {
		return err
	}
	machines := kube.NewMachines(objects, "fleet")
	c, err := controller.New(controller.Options{Cluster: "east", Machines: machines, Nodes: nodes, Provider: p, Drainer: d})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	return kube.Run(ctx, kube.Loop{Controller: c, Machines: machines, Nodes: nodes})
}

// The parts of a program that makes machines. Here the API servers are in memory, and so is the provider; it ends at once.
func Example_manage() {
	objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		v1alpha1.MachinesResource: "MachineList",
	})
	ctx, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer stop()
	fmt.Println(manage(ctx, objects, fake.NewClientset(), &machinetest.Memory{}, &controllertest.Cluster{}))
	// Output: <nil>
}
