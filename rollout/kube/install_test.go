// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// Install makes an API server that knows nothing of rollouts serve every kind, with the roles; it may be repeated, and an ordinary
// user may not call it.
func TestInstall(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	if err := kube.Install(t.Context(), env.User(t, "nobody")); !apierrors.IsForbidden(err) {
		t.Fatalf("an ordinary user installed: %v, want it forbidden", err)
	}
	for range 2 {
		if err := kube.Install(t.Context(), env.Config()); err != nil {
			t.Fatal(err)
		}
	}
	client := dynamic.NewForConfigOrDie(env.Config())
	for _, resource := range []schema.GroupVersionResource{
		v1alpha1.RolloutsResource, v1alpha1.RevisionsResource, v1alpha1.NodeShadowsResource, v1alpha1.DisruptionLedgersResource,
	} {
		if _, err := client.Resource(resource).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("right after Install: listing %s: %v", resource.Resource, err)
		}
	}
	roles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	for _, name := range []string{"belay-rollout-controller", "belay-rollout-agent"} {
		role, err := client.Resource(roles).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Errorf("role %q: %v", name, err)
			continue
		}
		if rules, _ := role.Object["rules"].([]any); len(rules) == 0 {
			t.Errorf("role %q has no rules", name)
		}
	}
}

// A definition that was just deleted, and that an object with a finalizer holds, is not taken for an installed
// one: Install says what it waits for, and makes it anew when it is gone.
func TestInstallOverADefinitionThatIsBeingDeleted(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	install := func(ctx context.Context) error { return kube.Install(ctx, env.Config()) }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(install(t.Context()))
	client := dynamic.NewForConfigOrDie(env.Config())
	revisions := client.Resource(v1alpha1.RevisionsResource)
	held := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.RevisionKind,
		"metadata": map[string]any{"name": "held", "finalizers": []any{"example.com/hold"}},
		"spec":     map[string]any{"class": "NonIntrusive", "opaque": "two", "digest": v1alpha1.OpaqueDigest("two")},
	}}
	_, err := revisions.Create(t.Context(), held, metav1.CreateOptions{})
	check(err)
	definitions := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	name := v1alpha1.RevisionsResource.GroupResource().String()
	check(definitions.Delete(t.Context(), name, metav1.DeleteOptions{}))
	ctx, stop := context.WithTimeout(t.Context(), 8*time.Second)
	defer stop()
	err = install(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "is being deleted") {
		t.Errorf("Install over a definition that is being deleted: %v, want the end of its time, and why", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- install(t.Context()) }()
	free := []byte(`{"metadata":{"finalizers":null}}`)
	_, err = revisions.Patch(t.Context(), "held", types.MergePatchType, free, metav1.PatchOptions{})
	check(err)
	check(<-ended)
	if _, err := revisions.Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Errorf("a Revision right after Install: %v, want that the kind is served", err)
	}
}

// A process whose kinds are not installed is told how to install them.
func TestWatchOfAKindThatIsNotInstalled(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	caches, err := kube.NewCaches(env.Config(), kube.CachesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- caches.Run(ctx) }()
	const want = "rollouts has not seen all yet: the API server does not serve this kind: see Install"
	err = testproc.Poll(time.Minute, func() error {
		if err := caches.Check(); err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("without definitions the caches say %w, want the name of Install", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the caches ended with %v, want nil", err)
	}
}

// An older version does not narrow what a newer one has installed: its fields, and the rights of its roles, stay. What
// an earlier one has installed is brought up.
func TestInstallNarrowsNothing(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	if err := kube.Install(t.Context(), env.Config()); err != nil {
		t.Fatal(err)
	}
	client := dynamic.NewForConfigOrDie(env.Config())
	name := v1alpha1.RevisionsResource.GroupResource().String()
	const spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/"
	for _, c := range []struct {
		resource, part, name, newer, older, want string
	}{
		{
			"apiextensions.k8s.io/customresourcedefinitions", "spec", name,
			`[{"op":"add","path":"` + spec + `later","value":{"type":"string"}}]`,
			`[{"op":"remove","path":"` + spec + `later"}, {"op":"remove","path":"` + spec + `opaque/maxLength"}]`,
			`"revisions.belay.dev" has the field v1alpha1.spec.later, which this version of belay lacks`,
		}, {
			"rbac.authorization.k8s.io/clusterroles", "rules", "belay-rollout-agent",
			`[{"op":"add","path":"/rules/-","value":{"apiGroups":["later"],"resources":["things"],"verbs":["get"]}}]`,
			`[{"op":"replace","path":"/rules","value":[]}]`,
			`"belay-rollout-agent" has the right "get" on "things" of group "later"`,
		},
	} {
		group, plural, _ := strings.Cut(c.resource, "/")
		objects := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
		patch := func(patch string) {
			t.Helper()
			_, err := objects.Patch(t.Context(), c.name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
		get := func() any {
			t.Helper()
			u, err := objects.Get(t.Context(), c.name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return u.Object[c.part]
		}
		installed := get()
		patch(c.newer)
		newer := get()
		if err := kube.Install(t.Context(), env.Config()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("over a newer %s: error %v, want %s", plural, err, c.want)
		}
		if !reflect.DeepEqual(get(), newer) {
			t.Errorf("the newer %s %q has changed", plural, c.name)
		}
		patch(c.older)
		if reflect.DeepEqual(get(), installed) {
			t.Fatalf("the older %s %q is the installed one", plural, c.name)
		}
		if err := kube.Install(t.Context(), env.Config()); err != nil {
			t.Errorf("over an older %s: %v", plural, err)
		}
		if !reflect.DeepEqual(get(), installed) {
			t.Errorf("an older %s %q was not brought up", plural, c.name)
		}
	}
}
