// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/lkg"
)

// The NodeConfig of a node names a ConfigMap by UID; source and fetcher find it. Then somebody creates the ConfigMap again: the name is
// the same, the object isn't. In production the client comes from [kube.NewClient].
func Example() {
	ctx := context.Background()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		fmt.Println(err)
		return
	}
	configMap := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "node-configs", Name: "pool-a-7f3c", UID: "b1a1"},
		Immutable:  ptr.To(true), Data: map[string]string{"kubelet": "maxPods: 200\n"},
	}
	nodeConfig := &v1alpha1.NodeConfig{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Generation: 4}}
	nodeConfig.Spec.Source = &v1alpha1.NodeConfigSource{ConfigMapRef: &v1alpha1.ConfigMapRef{
		Namespace: "node-configs", Name: "pool-a-7f3c", UID: "b1a1", Key: "kubelet",
	}}
	client := fake.NewSimpleDynamicClient(scheme, configMap, nodeConfig)

	source, err := kube.NewNodeConfigSource(client, "node-1", kube.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fetcher, err := kube.NewConfigMapFetcher(client, kube.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	spec, err := source.Desired(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	obj, err := fetcher.Fetch(ctx, *spec)
	fmt.Printf("generation %d wants %q: %q, %v\n", spec.Generation, spec.Name, obj.Data[spec.Key], err)

	spec.UID = "another"
	_, err = fetcher.Fetch(ctx, *spec)
	fmt.Println("recreated:", errors.Is(err, configsync.ErrMismatch))
	// Output:
	// generation 4 wants "pool-a-7f3c": "maxPods: 200\n", <nil>
	// recreated: true
}

// The status of a node that went back to its last known good config. A NewStatusReporter writes it to the NodeConfig.
func ExampleStatusOf() {
	good := lkg.Ref{Namespace: "node-configs", Name: "pool-a-7f3c", UID: "b1a1", Key: "kubelet"}
	bad := lkg.Ref{Namespace: "node-configs", Name: "pool-a-91d0", UID: "c2b2", Key: "kubelet"}
	s := configsync.Status{ // as Syncer.Status returns it
		Assigned: bad, Active: good, LastKnownGood: good,
		Condition: lkg.Condition{
			Status: lkg.StatusFalse, Message: "using last known good: (UID: b1a1)", Reason: "failed to validate current (UID: c2b2)",
		},
	}
	status := kube.StatusOf(s, v1alpha1.NodeConfigStatus{}, time.Now())
	fmt.Println("assigned:", status.Assigned.Display)
	fmt.Println("active:", status.Active.Display)
	c := status.Conditions[0]
	fmt.Printf("%s=%s, %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	// Output:
	// assigned: node-configs/pool-a-91d0
	// active: node-configs/pool-a-7f3c
	// ConfigOK=False, Rejected: using last known good: (UID: b1a1): failed to validate current (UID: c2b2)
}
