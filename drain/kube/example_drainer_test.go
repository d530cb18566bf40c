// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// newDrainer joins the parts: a watch for each kind of object, and a client that evicts. It returns when the cluster has been seen; the watches end
// with ctx.
func newDrainer(ctx context.Context, clientset kubernetes.Interface, config *rest.Config) (*drain.Drainer, error) {
	options := kube.CacheOptions{DaemonSets: true}
	factory := kube.NewFactory(clientset, options)
	cache, err := kube.NewCache(factory, options)
	if err != nil {
		return nil, err
	}
	client, err := kube.NewClient(config, kube.ClientOptions{})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if err := cache.WaitForSync(ctx); err != nil {
		return nil, err
	}
	return drain.New(drain.Options{Cache: cache.View(), Client: client})
}

// A Drainer for a real cluster, and what it would do. In production the clientset is that of kubernetes.NewForConfig(config).
func Example_drainer() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	clientset := fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "debug", UID: "d1"}, Spec: corev1.PodSpec{NodeName: "node-1"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		},
	)
	d, err := newDrainer(ctx, clientset, &rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, policy := range []drain.Policy{{}, {Unmanaged: drain.EvictPods}} {
		plan, err := d.Plan(ctx, policy, "node-1")
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, p := range plan.Nodes[0].Pods {
			fmt.Println(p.PodRef, p.Action, p.Message)
		}
	}
	// Output:
	// shop/debug Block no controller would create it again
	// shop/debug Evict
}
