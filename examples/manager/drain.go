// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/examples/metrics"
)

// addDrain adds a controller that drains each Node with the annotation example.com/drain.
func addDrain(ctx context.Context, mgr ctrl.Manager, counts *metrics.Drain) (*drain.Drainer, error) {
	pods, err1 := mgr.GetCache().GetInformer(ctx, &corev1.Pod{})
	nodes, err2 := mgr.GetCache().GetInformer(ctx, &corev1.Node{})
	budgets, err3 := mgr.GetCache().GetInformer(ctx, &policyv1.PodDisruptionBudget{})
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	d, err := kube.Open(ctx, mgr.GetConfig(), kube.OpenOptions{
		Informers: kube.Informers{Pods: pods, Nodes: nodes, Budgets: budgets}, NoWait: true, HTTP: mgr.GetHTTPClient(),
		Drain: drain.Options{
			Requests: requestsFrom(mgr.GetClient()), Recorder: mgr.GetEventRecorder("example-drain"), Metrics: counts.NewHooks(),
		},
	})
	if err != nil {
		return nil, err
	}
	wake := source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		context.AfterFunc(ctx, d.Watch(func(node string) {
			queue.Add(ctrl.Request{NamespacedName: client.ObjectKey{Name: node}})
		}))
		return d.Cache.WaitForSync(ctx) // compares the informers with the API server, once
	})
	return d.Drainer, ctrl.NewControllerManagedBy(mgr).Named("drain").For(&corev1.Node{}).WatchesRawSource(wake).
		Complete(reconcile.Func(func(ctx context.Context, node ctrl.Request) (ctrl.Result, error) {
			after, err := d.Reconcile(ctx, node.Name)
			return ctrl.Result{RequeueAfter: after}, err
		}))
}

// requestsFrom reads from the annotation of a Node what is wanted of it, and releases Nodes that have lost it.
func requestsFrom(reader client.Reader) func(context.Context, string) (drain.Request, bool, error) {
	return func(ctx context.Context, name string) (drain.Request, bool, error) {
		var node corev1.Node
		err := reader.Get(ctx, client.ObjectKey{Name: name}, &node)
		maintenance, wanted := node.Annotations["example.com/drain"]
		if wanted {
			return drain.Request{Holder: "example", Maintenance: maintenance, Mode: drain.Drain}, true, err
		}
		_, held := node.Annotations[drain.MarkAnnotation]
		return drain.Request{Holder: "example", Mode: drain.Release}, held, client.IgnoreNotFound(err)
	}
}
