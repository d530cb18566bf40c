// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/identity/nodeauth"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// guardOptions are what guard.yaml was made from.
func guardOptions() nodeauth.Options {
	return nodeauth.Options{
		Name: agentName, ServiceAccount: types.NamespacedName{Namespace: agents, Name: agentName},
		Resources: []nodeauth.Resource{
			{Group: "belay.dev", Resource: "nodeshadows", Verbs: []string{"get", "list", "watch"}, Subresources: []string{"status"}},
			{Group: "coordination.k8s.io", Resource: "leases", Namespace: agents, Verbs: []string{"get", "create", "update", "delete"}},
		},
	}
}

// guard.yaml is what package nodeauth makes, but for its roles.
func TestGuardIsThatOfThePackage(t *testing.T) {
	made, err := nodeauth.Objects(guardOptions())
	must(t, err)
	want := map[string]map[string]any{}
	for _, o := range made {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		must(t, err)
		if u := (&unstructured.Unstructured{Object: fields}); u.GroupVersionKind().Group != rbacv1.GroupName {
			delete(fields, "status")
			want[u.GetKind()] = fields
		}
	}
	got := map[string]map[string]any{}
	for _, u := range e2e.Objects(t, "../../manifests/agent/guard.yaml") {
		got[u.GetKind()] = u.Object
	}
	if diff := cmp.Diff(plainJSON(t, want), plainJSON(t, got)); diff != "" {
		t.Errorf("guard.yaml (-package +manifest):\n%s", diff)
	}
}

// The roles hold the rights that the packages name, and no others: no Revision is read where hooks are told what to bring.
func TestRolesAreThoseOfThePackages(t *testing.T) {
	want := map[string][]rbacv1.PolicyRule{"Role": {
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update", "delete"}},
	}}
	for _, r := range kube.AgentRules("") {
		if r.Resources[0] != v1alpha1.RevisionsResource.Resource {
			want["ClusterRole"] = append(want["ClusterRole"], r)
		}
	}
	want["ClusterRole"] = append(want["ClusterRole"], rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}})
	got := map[string][]rbacv1.PolicyRule{}
	for _, u := range e2e.Objects(t, "../../manifests/agent/rbac.yaml") {
		if u.GetKind() != "Role" && u.GetKind() != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role))
		got[u.GetKind()] = role.Rules
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rbac.yaml (-packages +manifest):\n%s", diff)
	}
}

// plainJSON brings numbers and lists of both sides to one form.
func plainJSON(t *testing.T, v any) (plain any) {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	must(t, json.Unmarshal(text, &plain))
	return plain
}
