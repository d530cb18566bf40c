// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
)

// TestInstallBringsOlderDefinitionsUp shows that an installation may be repeated, and replaces what an older version left.
func TestInstallBringsOlderDefinitionsUp(t *testing.T) {
	c := newCluster(t)
	resource := c.all.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	const name = "nodeconfigs.belay.dev"
	columns := func() int {
		crd, err := resource.Get(deadline(t), name, metav1.GetOptions{})
		must(t, err)
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		must(t, err)
		return len(versions[0].(map[string]any)["additionalPrinterColumns"].([]any))
	}
	want := columns()
	patch := `[{"op":"remove","path":"/spec/versions/0/additionalPrinterColumns/0"}]`
	_, err := resource.Patch(deadline(t), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
	if got := columns(); got != want-1 {
		t.Fatalf("%d columns in the older definition, want %d", got, want-1)
	}
	for range 2 {
		must(t, kube.Install(deadline(t), c.env.Config()))
	}
	if got := columns(); got != want {
		t.Errorf("%d columns after the installation, want %d", got, want)
	}
	if err := kube.Install(deadline(t), c.agent); !errors.Is(err, configsync.ErrForbidden) {
		t.Errorf("an agent installed definitions: %v, want it forbidden", err)
	}
	must(t, c.assignNodeConfig(deadline(t), ""))
}
