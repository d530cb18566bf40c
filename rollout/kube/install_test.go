// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/internal/testenv"
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
	for _, name := range []string{kube.ControllerRole, kube.AgentRole} {
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
