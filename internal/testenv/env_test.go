// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/binaries"
)

var shared testenv.Shared

func TestMain(m *testing.M) {
	if how := os.Getenv(ownerVariable); how != "" {
		own(how)
	}
	os.Exit(shared.Main(m))
}

func client(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func deadline(t *testing.T, after time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	t.Cleanup(cancel)
	return ctx
}

func TestServerSaysThePinnedRelease(t *testing.T) {
	want, err := binaries.KubernetesVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("KUBEBUILDER_ASSETS") != "" {
		t.Skip("KUBEBUILDER_ASSETS supplies another kube-apiserver than the pinned one")
	}
	version, err := client(t, shared.Env(t).Config()).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion != want {
		t.Errorf("/version says %q, want the pinned %q", version.GitVersion, want)
	}
	if got := "v" + version.Major + "." + version.Minor + "."; len(got) < 5 || want[:len(got)] != got {
		t.Errorf("/version says major %q and minor %q, want those of %q", version.Major, version.Minor, want)
	}
	if got := fmt.Sprintf("v1.%d.", shared.Env(t).Minor(t)); !strings.HasPrefix(want, got) {
		t.Errorf("Minor says %q, want that of %q", got, want)
	}
}

func TestSharedIsOneControlPlane(t *testing.T) {
	if first, second := shared.Env(t), shared.Env(t); first != second {
		t.Errorf("two calls of Env returned %p and %p, want one control plane for the package", first, second)
	}
}

func TestUserHasOnlyTheRightsOfRBAC(t *testing.T) {
	env := shared.Env(t)
	namespace, ctx := env.Namespace(t), deadline(t, 30*time.Second)
	reader := client(t, env.User(t, "reader-"+namespace, "readers")).CoreV1().ConfigMaps(namespace)
	if _, err := reader.List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("a user without rights listed ConfigMaps: error %v, want Forbidden", err)
	}
	admin := client(t, env.Config()).RbacV1()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "read"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}},
		},
	}
	if _, err := admin.Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "read"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "read"},
		Subjects:   []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "readers"}},
	}
	if _, err := admin.RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the group's right to reach the authorizer", func() error {
		_, err := reader.List(ctx, metav1.ListOptions{})
		return err
	})
}

func TestNodeMayChangeOnlyItself(t *testing.T) {
	env, ctx := shared.Env(t), deadline(t, 30*time.Second)
	for _, name := range []string{"restricted-a", "restricted-b"} {
		if _, err := env.CreateNode(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	nodes := client(t, env.User(t, "system:node:restricted-a", "system:nodes")).CoreV1().Nodes()
	eventually(t, 10*time.Second, "the node's own status to be writable", func() error {
		return setReady(ctx, nodes, "restricted-a")
	})
	if err := setReady(ctx, nodes, "restricted-b"); !apierrors.IsForbidden(err) {
		t.Errorf("node restricted-a wrote the status of restricted-b: error %v, want Forbidden", err)
	}
}

func TestNamespaceAdmitsPods(t *testing.T) {
	env := shared.Env(t)
	namespace, other := env.Namespace(t), env.Namespace(t)
	if namespace == other {
		t.Fatalf("two calls of Namespace returned %q", namespace)
	}
	pods := client(t, env.Config()).CoreV1().Pods(namespace)
	if _, err := pods.Create(deadline(t, 10*time.Second), pod("p"), metav1.CreateOptions{}); err != nil {
		t.Errorf("creating a pod in a fresh namespace: %v", err)
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "belay.test/none:1"}}},
	}
}
