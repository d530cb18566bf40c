// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/identity/nodeauth"
)

// seats are a custom resource that has namespaces.
var seats = schema.GroupVersionResource{Group: "nodeauth.test.belay.dev", Version: "v1", Resource: "seats"}

const seatCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: seats.nodeauth.test.belay.dev}
spec:
  group: nodeauth.test.belay.dev
  names: {kind: Seat, listKind: SeatList, plural: seats, singular: seat}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func seat(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": seats.GroupVersion().String(), "kind": "Seat", "metadata": map[string]any{"name": name},
	}}
}

// TestOtherNamespacesAreLeftAlone covers R-AU-06: what agents have nothing to do with does not depend on their policy. A write there is a
// matter of RBAC, which gives them no right. Where every kind has a namespace a selector sees to it, otherwise a match condition.
func TestOtherNamespacesAreLeftAlone(t *testing.T) {
	for name, resources := range map[string]func([]nodeauth.Resource) []nodeauth.Resource{
		"selector":  func(all []nodeauth.Resource) []nodeauth.Resource { return all[1:] },
		"condition": func(all []nodeauth.Resource) []nodeauth.Resource { return all },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.options.Resources = resources(c.options.Resources)
			a := c.agent(t, "a")
			c.guard(t)
			elsewhere := c.env.Namespace(t)
			_, err := a.client.Resource(leases).Namespace(elsewhere).Create(t.Context(), lease("agent-nobody"), dryCreate)
			must(t, err)
			c.narrow(t)
			_, err = c.agentOf(t, "narrow", a.node).client.Resource(leases).Namespace(elsewhere).Create(t.Context(), lease(a.node.Name), dryCreate)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot create resource "leases"`) {
				t.Errorf("got %v, want RBAC to refuse it", err)
			}
		})
	}
}

// TestForgottenNamespaceOpensNothing covers R-AU-01 and R-AU-06: where Resource.Namespace is missing for a kind that has namespaces, the role is for
// all of them. Then the policy denies every write of the kind: in the namespaces of other kinds, in others, and to the own name too.
func TestForgottenNamespaceOpensNothing(t *testing.T) {
	all := []string{"get", "create", "update", "patch", "delete"}
	forgotten := nodeauth.Resource{Group: seats.Group, Resource: seats.Resource, Verbs: all, NotOwned: true}
	for name, row := range map[string]struct {
		nodeUsers bool
		resources func(c *cluster) []nodeauth.Resource
	}{
		"agent, beside Leases": {false, func(c *cluster) []nodeauth.Resource { return append(c.options.Resources, forgotten) }},
		"agent, alone":         {false, func(*cluster) []nodeauth.Resource { return []nodeauth.Resource{forgotten} }},
		"node user":            {true, func(*cluster) []nodeauth.Resource { return []nodeauth.Resource{forgotten} }},
		"node user, beside a kind with a namespace": {true, func(c *cluster) []nodeauth.Resource {
			return []nodeauth.Resource{forgotten, {Group: "other.example.com", Resource: "others", Namespace: c.namespace, Verbs: all}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			must(t, c.env.InstallCRDs(t.Context(), []byte(seatCRD)))
			c.options.Resources, c.options.NodeUsers = row.resources(c), row.nodeUsers
			if row.nodeUsers {
				c.options.NodeConditions = nil
			}
			a := c.agent(t, "a")
			client := a.client
			if row.nodeUsers {
				_, client = clients(t, c.env.User(t, "system:node:"+a.node.Name, "system:nodes"))
			}
			c.install(t)
			c.deniesSeats(t, client, a.node.Name)
		})
	}
}

// deniesSeats wants the policy to deny seats, of whatever name and in whatever namespace.
func (c *cluster) deniesSeats(t *testing.T, client dynamic.Interface, node string) {
	t.Helper()
	for _, namespace := range []string{c.namespace, c.env.Namespace(t)} {
		for _, name := range []string{"of-another-node", node} {
			says := fmt.Sprintf(`the agent of node "%s" may not CREATE seats.nodeauth.test.belay.dev in %s, here `, node, namespace)
			eventually(t, func() string {
				_, err := client.Resource(seats).Namespace(namespace).Create(t.Context(), seat(name), dryCreate)
				return c.denial(err, says)
			})
		}
	}
}
