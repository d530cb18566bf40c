// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/identity/nodeauth"
	"github.com/belayproject/belay/identity/nodeauth/kube"
)

// The agents of a DaemonSet set a condition of their own Nodes. What is missing is named before anything is written.
func ExampleInstall() {
	config := &rest.Config{Host: "https://127.0.0.1:6443"} // in a pod: rest.InClusterConfig()
	err := kube.Install(context.Background(), config, nodeauth.Options{
		ServiceAccount: types.NamespacedName{Namespace: "my-system", Name: "agent"},
		NodeConditions: []corev1.NodeConditionType{"example.com/Checked"},
	})
	fmt.Println(err)
	// Output: identity/nodeauth/kube.Install: Options.Name is required (that of the policy)
}
