// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/belayproject/belay/machine/v1alpha1"
)

// says waits until an object's condition Valid is that of its present generation, and has such a status and words in its message.
func (b *bed) says(r schema.GroupVersionResource, name string, status metav1.ConditionStatus, words string) {
	b.t.Helper()
	var last any
	err := wait.PollUntilContextTimeout(b.t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		u, err := b.dynamic.Resource(r).Namespace(b.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		var o struct {
			Status struct {
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
			return false, err
		}
		c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionValid)
		last = c
		return c != nil && c.Status == status && c.ObservedGeneration == u.GetGeneration() && strings.Contains(c.Message, words), nil
	})
	if err != nil {
		b.t.Fatalf("R-MA-16: %s %q: Valid is %+v, want %s of the present generation: %v", r.Resource, name, last, status, err)
	}
}

// R-MA-16: after an edit that can't be understood, or that the provider refuses, the condition Valid is False and of the generation of that edit, on machines, also
// retired ones, and on what makes them; after the next one it is True again.
func TestInvalidEditsShow(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.runGroups()
	b.create("a", map[string]any{"roles": []any{"worker"}, "providerConfig": map[string]any{"image": "a"}, "deletion": map[string]any{"diskPolicy": "Destroy"}})
	b.running("a")
	b.deployment("d", 1, "a")
	b.ready("d", 1)
	machines, deployments := v1alpha1.MachinesResource, v1alpha1.MachineDeploymentsResource
	b.says(machines, "a", metav1.ConditionTrue, "")
	b.edit("a", `{"spec":{"nodeMetadata":{"labels":{"a/b/c":"x"}}}}`)
	b.says(machines, "a", metav1.ConditionFalse, `nodeMetadata.labels: key "a/b/c"`)
	b.edit("a", `{"spec":{"nodeMetadata":null,"providerConfig":{"imagine":"b"}}}`)
	b.says(machines, "a", metav1.ConditionFalse, "imagine")
	b.edit("a", `{"spec":{"providerConfig":{"imagine":null}}}`)
	b.says(machines, "a", metav1.ConditionTrue, "")

	b.edit("a", `{"spec":{"decommission":true}}`)
	b.until("a", "retired", func(m *v1alpha1.Machine) bool { return m != nil && m.Status.Phase == "Retired" })
	b.edit("a", `{"spec":{"nodeMetadata":{"labels":{"a/b/c":"x"}}}}`)
	b.says(machines, "a", metav1.ConditionFalse, `nodeMetadata.labels: key "a/b/c"`)
	b.edit("a", `{"spec":{"nodeMetadata":null}}`)
	b.says(machines, "a", metav1.ConditionTrue, "")

	template := func(patch string) {
		t.Helper()
		_, err := b.deployments().Patch(b.ctx(), "d", types.MergePatchType, []byte(`{"spec":{"template":{"spec":`+patch+`}}}`), metav1.PatchOptions{})
		b.must(err)
	}
	b.says(deployments, "d", metav1.ConditionTrue, "")
	template(`{"nodeMetadata":{"labels":{"a/b/c":"x"}}}`)
	b.says(deployments, "d", metav1.ConditionFalse, `nodeMetadata.labels: key "a/b/c"`)
	template(`{"nodeMetadata":null}`)
	b.says(deployments, "d", metav1.ConditionTrue, "")
	check := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"a/b/c": "x"}}}}}
	check.SetAPIVersion(v1alpha1.GroupVersion.String())
	check.SetKind(v1alpha1.MachineHealthCheckKind)
	check.SetName("h")
	_, err := b.dynamic.Resource(v1alpha1.MachineHealthChecksResource).Namespace(b.namespace).Create(b.ctx(), check, metav1.CreateOptions{})
	b.must(err)
	b.says(v1alpha1.MachineHealthChecksResource, "h", metav1.ConditionFalse, "a/b/c")
}
