// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/belayproject/belay/identity/nodeauth"
)

// What an agent needs that reports the status of its config, sets a condition of its Node and keeps a heartbeat. Create the objects in this order.
// The Lease must be owned by the Node: the agent sets identity.Spec.Owner. With NotOwned it need not be.
func Example() {
	objects, err := nodeauth.Objects(nodeauth.Options{
		Name:           "belay-agent",
		ServiceAccount: types.NamespacedName{Namespace: "belay", Name: "agent"},
		Resources: []nodeauth.Resource{
			{Group: "belay.dev", Resource: "nodeconfigs", Verbs: []string{"get", "list", "watch"}, Subresources: []string{"status"}},
			{Group: "coordination.k8s.io", Resource: "leases", Namespace: "belay", Prefix: "agent-", Verbs: []string{"get", "create", "update", "delete"}},
		},
		NodeConditions: []corev1.NodeConditionType{"ConfigOK"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range objects {
		m, err := meta.Accessor(o)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(o.GetObjectKind().GroupVersionKind().Kind, m.GetName())
	}
	// Output:
	// ValidatingAdmissionPolicy belay-agent
	// ValidatingAdmissionPolicyBinding belay-agent
	// FlowSchema belay-agent
	// ClusterRole belay-agent
	// ClusterRole belay-agent-node
	// Role belay-agent
	// ClusterRoleBinding belay-agent
	// ClusterRoleBinding belay-agent-node
	// RoleBinding belay-agent
}

// An agent probes before it acts. This API server has no policy.
func ExampleProbe() {
	ctx := context.Background()
	client := fake.NewClientset()
	probe := nodeauth.Probe{
		Policy: "belay-agent",
		Try:    nodeauth.TryLease(client.CoordinationV1().Leases("belay"), "agent-nobody"),
	}
	err := probe.Once(ctx)
	fmt.Println(errors.Is(err, nodeauth.ErrUnguarded))
	fmt.Println(err)
	// Output:
	// true
	// probing the policy "belay-agent": a write for another node would be accepted: the agent is not held to its own node
}
