// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/metrics"
	"github.com/belayproject/belay/machine/controller"
	machinekube "github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/provider"
)

// addMachine adds the controller of all Machines. It runs while the manager leads.
func addMachine(
	ctx context.Context, mgr ctrl.Manager, d *drain.Drainer, cloud provider.Provider, counts *metrics.Machine,
) error {
	informer, err1 := mgr.GetCache().GetInformer(ctx, &corev1.Node{})
	core, err2 := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	objects, err3 := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	nodes, err := machinekube.NewNodes(core, informer, nil)
	if err != nil {
		return err
	}
	machines, err := machinekube.NewMachines(objects, corev1.NamespaceAll)
	if err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		hooks, forget := counts.NewHooks()
		defer forget()
		c, err := controller.New(controller.Options{
			Cluster: "example", Machines: machines, Nodes: nodes, Provider: cloud, Metrics: hooks,
			Secrets: machinekube.Secrets{Client: core},
			Drainer: &drain.NodeDrainer{Drainer: d, Holder: "machine/example"},
		})
		if err != nil {
			return err
		}
		return machinekube.Run(ctx, machinekube.Loop{Controller: c, Machines: machines, Nodes: nodes, Drains: d})
	}))
}
