// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/belayproject/belay/machine/kube"
)

// A Node is found by the last segment of its ProviderID, which is the token of its instance.
func ExampleNodes_Of() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client := fake.NewClientset(&corev1.Node{ // a real one in production
		ObjectMeta: metav1.ObjectMeta{Name: "node-7"}, Spec: corev1.NodeSpec{ProviderID: "acme:///zone-b/1f2e3d4c-0123456789abcdef-2"},
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	nodes, err := kube.NewNodes(client, factory.Core().V1().Nodes().Informer(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	found, err := nodes.Of(ctx, "1f2e3d4c-0123456789abcdef-2")
	fmt.Println(found[0].Name, found[0].Uninitialized, err)
	// Output: node-7 false <nil>
}
