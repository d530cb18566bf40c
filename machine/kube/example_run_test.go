// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
)

// manage brings the machines of a namespace to what they are declared to be, until ctx ends. objects is a client of the API server that has the machines,
// workload one of the cluster that they join. d is a drain.NodeDrainer.
func manage(ctx context.Context, objects dynamic.Interface, workload kubernetes.Interface, p provider.Provider, d controller.Drainer) error {
	factory := informers.NewSharedInformerFactory(workload, 0)
	nodes, err := kube.NewNodes(workload, factory.Core().V1().Nodes().Informer(), nil)
	if err != nil {
		return err
	}
	machines, err := kube.NewMachines(objects, "fleet")
	if err != nil {
		return err
	}
	c, err := controller.New(controller.Options{Cluster: "east", Machines: machines, Nodes: nodes, Provider: p, Drainer: d})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	return kube.Run(ctx, kube.Loop{Controller: c, Machines: machines, Nodes: nodes})
}

// The parts of a program that makes machines. The API server of this example answers nothing, and the provider is in memory.
func Example_manage() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	workload, err := kubernetes.NewForConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer stop()
	if err := manage(ctx, objects, workload, &machinetest.Memory{}, &controllertest.Cluster{}); err != nil && ctx.Err() == nil {
		fmt.Println(err)
	}
	fmt.Println("it ends with its context")
	// Output: it ends with its context
}
