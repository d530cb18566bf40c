// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// cluster is a control plane with one node, and the credentials of an agent that may do what package kube names for it.
type cluster struct {
	env    *testenv.Env
	admin  *kubernetes.Clientset
	all    dynamic.Interface // of the administrator
	client dynamic.Interface // of the agent

	node              string
	namespace, hidden string // one that the agent may read, one that it may not
}

// newCluster makes a node on the shared control plane.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	env := shared.Env(t)
	must(t, kube.Install(deadline(t), env.Config()))
	c := &cluster{env: env, namespace: env.Namespace(t), hidden: env.Namespace(t)}
	c.node = "n-" + c.namespace
	c.admin = kubernetes.NewForConfigOrDie(env.Config())
	c.all = clientFor(t, env.Config())
	_, err := env.CreateNode(deadline(t), c.node)
	must(t, err)
	user := "agent-" + c.node
	c.client = clientFor(t, env.User(t, user))
	rules := append(kube.NodeConfigRules(c.node), kube.NodeSourceRules(c.node)...)
	rules = append(rules, kube.NodeConditionRules(c.node)...)
	c.bind(t, user, rules...)
	c.bindIn(t, c.namespace, user, kube.ConfigMapRules()...)
	configMaps := c.client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(c.namespace)
	eventually(t, "the rights of "+user, func() error {
		_, err1 := c.client.Resource(v1alpha1.NodeConfigsResource).Get(deadline(t), c.node, metav1.GetOptions{})
		_, err2 := configMaps.Get(deadline(t), "absent", metav1.GetOptions{})
		return errors.Join(ignoreNotFound(err1), ignoreNotFound(err2))
	})
	return c
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func clientFor(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := kube.NewClient(config, nil)
	must(t, err)
	return client
}

// bind gives user the rules on cluster-scoped objects. The authorizer learns of it a moment later.
func (c *cluster) bind(t *testing.T, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	roles, meta := c.admin.RbacV1(), metav1.ObjectMeta{Name: user}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	_, err := roles.ClusterRoles().Create(deadline(t), role, metav1.CreateOptions{})
	must(t, err)
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subject(user), RoleRef: roleRef("ClusterRole", user)}
	_, err = roles.ClusterRoleBindings().Create(deadline(t), binding, metav1.CreateOptions{})
	must(t, err)
}

// bindIn gives user the rules in a namespace. The authorizer learns of it a moment later.
func (c *cluster) bindIn(t *testing.T, namespace, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	roles, meta := c.admin.RbacV1(), metav1.ObjectMeta{Name: user}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: rules}
	_, err := roles.Roles(namespace).Create(deadline(t), role, metav1.CreateOptions{})
	must(t, err)
	binding := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subject(user), RoleRef: roleRef("Role", user)}
	_, err = roles.RoleBindings(namespace).Create(deadline(t), binding, metav1.CreateOptions{})
	must(t, err)
}

func subject(user string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

// eventually asks until done returns nil, and ends the test if that takes a minute.
func eventually(t *testing.T, what string, done func() error) {
	t.Helper()
	pace := testproc.NewPace()
	end := time.After(time.Minute)
	for {
		err := done()
		if err == nil {
			return
		}
		select {
		case <-pace.Next():
		case <-end:
			t.Fatalf("waiting for %s: %v", what, err)
		}
	}
}

// assignNodeConfig makes the NodeConfig of the node, with a source.
func (c *cluster) assignNodeConfig(t *testing.T) {
	t.Helper()
	ref := map[string]any{"namespace": "ns", "name": "cm2", "uid": "u2"}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.NodeConfigKind,
		"metadata": map[string]any{"name": c.node}, "spec": map[string]any{"source": map[string]any{"configMapRef": ref}},
	}}
	_, err := c.all.Resource(v1alpha1.NodeConfigsResource).Create(deadline(t), u, metav1.CreateOptions{})
	must(t, err)
}

// nodeConfig is the NodeConfig of the node, as text.
func (c *cluster) nodeConfig(t *testing.T) string {
	t.Helper()
	u, err := c.all.Resource(v1alpha1.NodeConfigsResource).Get(deadline(t), c.node, metav1.GetOptions{})
	must(t, err)
	return fmt.Sprintf("%+v", u.Object)
}
