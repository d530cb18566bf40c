// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// A cache of the cluster, and the plan for one of its nodes. In production the client comes from kubernetes.NewForConfig.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "c1", Labels: map[string]string{"app": "cart"}},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "cart", UID: "r1", Controller: ptr.To(true)}}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
		},
		Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, CurrentHealthy: 1, DesiredHealthy: 1},
	}
	options := kube.CacheOptions{Node: "node-1"}
	factory := kube.NewFactory(fake.NewClientset(node, pod, budget), options)
	cache, err := kube.NewCache(factory, options)
	if err != nil {
		fmt.Println(err)
		return
	}
	factory.Start(ctx.Done())
	if err := cache.WaitForSync(ctx); err != nil {
		fmt.Println(err)
		return
	}
	plan := drain.Plan(drain.Snapshot{
		Nodes:   []drain.NodeView{{Node: cache.View().Node("node-1"), Pods: cache.View().Pods("node-1")}},
		Budgets: cache.View().Budgets("shop"),
	}, drain.Policy{}, time.Now())
	for _, p := range plan.Nodes[0].Pods {
		fmt.Println(p.PodRef, p.Action, p.Reason)
	}
	// Output:
	// shop/cart Wait BudgetExhausted
}

// An eviction that the server refuses, and what its answer means. The server of this example is none.
func ExampleClient() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusTooManyRequests,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}},
		})
	}))
	defer server.Close()
	client, err := kube.NewClientForConfig(&rest.Config{Host: server.URL}, nil, kube.ClientOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = client.DryRunEvict(context.Background(), drain.PodRef{Namespace: "shop", Name: "cart", UID: "c1"})
	fmt.Println(drain.Classify(err).Verdict)
	// Output:
	// BudgetExhausted
}
