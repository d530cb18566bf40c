// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/belayproject/belay/identity/nodeauth"
)

// podAgents are agents in pods, by what examples/manifests/agent/guard.yaml is made of.
func podAgents() nodeauth.Options {
	watch := []string{"get", "list", "watch"}
	return nodeauth.Options{
		Name:           "belay-agent",
		ServiceAccount: types.NamespacedName{Namespace: agentNamespace, Name: agentAccount},
		Resources: []nodeauth.Resource{
			{Group: "belay.dev", Resource: "nodeshadows", Verbs: watch, Subresources: []string{"status"}},
			{Group: "coordination.k8s.io", Resource: "leases", Namespace: agentNamespace, Verbs: []string{"get", "create", "update", "delete"}},
		},
	}
}

// hostAgents are agents that a host starts, with the certificate of its kubelet, by what host-agent.yaml is made of.
func hostAgents() nodeauth.Options {
	watch := []string{"get", "list", "watch"}
	return nodeauth.Options{
		Name:      "belay-host-agent",
		NodeUsers: true,
		Resources: []nodeauth.Resource{
			{Group: "belay.dev", Resource: "nodeshadows", Verbs: watch, Subresources: []string{"status"}},
			{Group: "belay.dev", Resource: "nodeconfigs", Verbs: watch, Subresources: []string{"status"}},
		},
	}
}

// bases are the directories below the manifests that hold a kustomization, and "." for the whole.
func bases(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(manifests, "*", "kustomization.yaml"))
	must(t, err)
	all := []string{"."}
	for _, f := range found {
		all = append(all, filepath.Base(filepath.Dir(f)))
	}
	if len(all) < 10 {
		t.Fatalf("there are the bases %q, want at least 10", all)
	}
	return all
}

// extra are the bases that are not part of the whole.
var extra = []string{"host-agent", "machines", "monitoring", "node-maintenance"}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func encoded(t testing.TB, u *unstructured.Unstructured) []byte {
	t.Helper()
	text, err := u.MarshalJSON()
	must(t, err)
	return text
}

// untyped is an object without what the server puts in.
func untyped(t testing.TB, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	must(t, err)
	delete(content, "status")
	u := &unstructured.Unstructured{Object: content}
	if u.GetKind() == "" {
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		must(t, err)
		u.SetGroupVersionKind(kinds[0])
	}
	return u
}

// keys are the names of objects, sorted.
func keys(all []*unstructured.Unstructured) (names []string) {
	for _, u := range all {
		names = append(names, key(u))
	}
	slices.Sort(names)
	return names
}
