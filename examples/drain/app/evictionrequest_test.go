// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/evictionapi"
	"github.com/belayproject/belay/internal/testenv"
)

// The command asks for the eviction of a pod with spec.evictionResponders, without a flag, waits for them, and
// withdraws the request at its timeout. The plan says so before.
func TestEvictionRespondersAreWaitedFor(t *testing.T) {
	env := testenv.Start(t, testenv.Options{Args: map[testenv.Component][]string{testenv.APIServer: {
		"--feature-gates=EvictionRequestAPI=true", "--runtime-config=lifecycle.k8s.io/v1alpha1=true",
	}}})
	w := &world{env: env, client: kubernetes.NewForConfigOrDie(env.Config()), namespace: env.Namespace(t)}
	w.kubeconfig = w.login(t, "admin", "system:masters")
	node := w.namespace
	if _, err := env.CreateNode(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	objects := dynamic.NewForConfigOrDie(env.Config())
	pods := objects.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(w.namespace)
	_, err := pods.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "vm", "ownerReferences": []any{map[string]any{
			"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "vm", "uid": "r1", "controller": true,
		}}},
		"spec": map[string]any{
			"nodeName":   node,
			"containers": []any{map[string]any{"name": "main", "image": "example.com/main"}},
			"evictionResponders": []any{
				map[string]any{"name": "vm.example.com/migrate", "priority": int64(10000)},
			},
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	requests := func() []unstructured.Unstructured {
		list, err := objects.Resource(evictionapi.RequestsResource()).Namespace(w.namespace).
			List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}

	p := w.drain(t, "plan", node)
	p.ends(t, exitDone)
	p.says(t, `responder "EvictionRequest" is to be asked`)
	if n := len(requests()); n != 0 {
		t.Errorf("after the plan: %d EvictionRequests, want none", n)
	}
	p = w.drain(t, node, "--timeout=3s")
	p.ends(t, exitBlocked)
	p.says(t, "WaitingForHook", fmt.Sprintf("EvictionRequest %s/", w.namespace))
	if n := len(requests()); n != 0 {
		t.Errorf("after the timeout: %d EvictionRequests, want none, since they end in evictions", n)
	}
	if pod, err := pods.Get(t.Context(), "vm", metav1.GetOptions{}); err != nil || pod.GetDeletionTimestamp() != nil {
		t.Errorf("got %v and error %v, want the pod as it was", pod, err)
	}
	w.drain(t, "release", node).ends(t, exitDone)
	if n := len(requests()); n != 0 {
		t.Errorf("after the release: %d EvictionRequests, want none", n)
	}
}
