// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// The component gives what package drain/evictionrequest needs beside the rights of the controller, and its flag.
func TestEvictionRequestsTakeTheirRightsAlone(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	whole, err := filepath.Abs(manifests)
	must(t, err)
	relative := func(elements ...string) string {
		path, err := filepath.Rel(dir, filepath.Join(append([]string{whole}, elements...)...))
		must(t, err)
		return path
	}
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [" + relative("controller") +
		"]\ncomponents: [" + relative("components", "eviction-requests") + "]\n"
	must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	base, err := filepath.Rel(whole, dir)
	must(t, err)
	all := build(t, base)
	const group = "lifecycle.k8s.io"
	want := flat([]rbacv1.PolicyRule{
		rule(group, "evictionrequests", "list", "watch"),
		rule(group, "evictions", "get", "list", "watch", "create", "patch", "delete"),
		rule(group, "evictionrequests/status", "patch"), rule(group, "evictions/status", "patch"),
		rule(group, "evictionrequests/finalizers", "update"), rule("", "pods", "get"),
	})
	got := flat(find[rbacv1.ClusterRole](t, all, "ClusterRole", "belay-eviction-requests").Rules)
	if !maps.Equal(got, want) {
		t.Errorf("the ClusterRole gives what nothing needs, %q, and lacks %q", beyond(got, want), beyond(want, got))
	}
	args := find[appsv1.Deployment](t, all, "Deployment", "belay-controller").Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--eviction-requests") {
		t.Errorf("the arguments are %q", args)
	}
}
