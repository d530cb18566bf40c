// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/metrics"
	"github.com/belayproject/belay/rollout/controller"
	rolloutkube "github.com/belayproject/belay/rollout/kube"
)

// addRollout adds the controller of the Rollouts of the domain example. It runs while the manager leads.
func addRollout(ctx context.Context, mgr ctrl.Manager, d *drain.Drainer, counts *metrics.Rollout) error {
	var in rolloutkube.Informers
	for _, kind := range []struct {
		of     client.Object
		option *rolloutkube.Informer
	}{
		{&corev1.Node{}, &in.Nodes}, {&corev1.Pod{}, &in.Pods}, {&appsv1.Deployment{}, &in.Deployments},
		{&appsv1.StatefulSet{}, &in.StatefulSets}, {&appsv1.DaemonSet{}, &in.DaemonSets},
	} {
		informer, err := mgr.GetCache().GetInformer(ctx, kind.of)
		if err != nil {
			return err
		}
		*kind.option = informer
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		hooks, forget := counts.NewHooks("example")
		defer forget()
		return rolloutkube.RunController(ctx, mgr.GetConfig(), rolloutkube.ControllerOptions{
			Domain: "example", Drains: d,
			Controller: controller.Options{
				Drainer:  &drain.NodeDrainer{Drainer: d, Holder: "rollout/example"},
				Recorder: mgr.GetEventRecorder("example-rollout"), Metrics: hooks,
			},
			CachesOptions: rolloutkube.CachesOptions{HTTP: mgr.GetHTTPClient(), Informers: in},
		})
	}))
}
