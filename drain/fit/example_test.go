// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain/fit"
)

// Two pods leave a Node, and there is room for one.
func ExamplePlaceReplacements() {
	node := func(name string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("110"),
			}}}
	}
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Spec: corev1.PodSpec{
			NodeName: "node-1", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}},
		}}
	}
	cluster := fit.Cluster{Nodes: []*corev1.Node{node("node-1"), node("node-2")}, Draining: []string{"node-1"}}
	for _, v := range fit.PlaceReplacements(cluster, []*corev1.Pod{pod("cart-0"), pod("cart-1")}) {
		fmt.Printf("fits: %t, node: %q, why: %q\n", v.Fits, v.Node, v.Why)
	}
	// Output:
	// fits: true, node: "node-2", why: ""
	// fits: false, node: "", why: "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) are being drained"
}
