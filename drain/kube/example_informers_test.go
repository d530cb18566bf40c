// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// A cache over informers that run already, so that the process has one watch of each kind. In production the clientset
// comes from kubernetes.NewForConfig, and kube.Open makes the Drainer too; in a controller-runtime program the
// informers come from mgr.GetCache().GetInformer.
func ExampleNewCacheFromInformers() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	clientset := fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "debug", UID: "d1"}, Spec: corev1.PodSpec{NodeName: "node-1"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		},
	)
	factory := informers.NewSharedInformerFactory(clientset, 0)
	mine := kube.Informers{
		Pods:    factory.Core().V1().Pods().Informer(),
		Nodes:   factory.Core().V1().Nodes().Informer(),
		Budgets: factory.Policy().V1().PodDisruptionBudgets().Informer(),
	}
	factory.Start(ctx.Done())

	cache, err := kube.NewCacheFromInformers(clientset, mine, kube.CacheOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cache.Close()
	if err := cache.WaitForSync(ctx); err != nil {
		fmt.Println(err)
		return
	}
	view := cache.View()
	for _, policy := range []drain.Policy{{}, {Unmanaged: drain.EvictPods}} {
		plan := drain.Plan(drain.Snapshot{
			Nodes: []drain.NodeView{{Node: view.Node("node-1"), Pods: view.Pods("node-1")}}, Budgets: view.Budgets("shop"),
		}, policy, time.Now())
		for _, p := range plan.Nodes[0].Pods {
			fmt.Println(p.PodRef, p.Action, p.Message)
		}
	}
	// Output:
	// shop/debug Block no controller would create it again
	// shop/debug Evict
}
