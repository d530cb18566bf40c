// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/internal/agent/apiserver"
)

// callTimeout bounds each call of the API server.
const callTimeout = 15 * time.Second

// A Cluster is an API server as its administrator sees it.
type Cluster struct {
	// Client is the administrator's.
	Client kubernetes.Interface
	// Namespace holds the ConfigMaps.
	Namespace string

	dynamic dynamic.Interface
}

// NewCluster installs the CRDs with the administrator's config.
func NewCluster(t testing.TB, admin *rest.Config, namespace string) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := kube.Install(ctx, admin); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	return &Cluster{Client: client, Namespace: namespace, dynamic: dyn}
}

func within(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), callTimeout)
}

// Grant gives a user exactly the rights that an agent of that node needs.
func (c *Cluster) Grant(t testing.TB, user, node string) {
	t.Helper()
	ctx, cancel := within(t)
	defer cancel()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	rules := append(kube.NodeConfigRules(node), append(kube.NodeSourceRules(node), kube.NodeConditionRules(node)...)...)
	meta := metav1.ObjectMeta{Name: "agent-" + node}
	_, err := c.Client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	_, err2 := c.Client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
	}, metav1.CreateOptions{})
	_, err3 := c.Client.RbacV1().Roles(c.Namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: kube.ConfigMapRules()}, metav1.CreateOptions{})
	_, err4 := c.Client.RbacV1().RoleBindings(c.Namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
	}, metav1.CreateOptions{})
	_, err5 := c.Client.RbacV1().Roles(apiserver.EventNamespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: apiserver.EventRules()}, metav1.CreateOptions{})
	_, err6 := c.Client.RbacV1().RoleBindings(apiserver.EventNamespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
	}, metav1.CreateOptions{})
	if err := errors.Join(err, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
}

// Told are the reasons of the events about a node, sorted.
func (c *Cluster) Told(t testing.TB, node string) ([]string, error) {
	t.Helper()
	ctx, cancel := within(t)
	defer cancel()
	list, err := c.Client.EventsV1().Events(apiserver.EventNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range list.Items {
		if e.Regarding.Kind == "Node" && e.Regarding.Name == node && e.ReportingController == apiserver.EventController {
			out = append(out, e.Reason)
		}
	}
	slices.Sort(out)
	return out, nil
}

// ConfigMap creates an immutable ConfigMap with a config under the key kubelet, and more entries.
func (c *Cluster) ConfigMap(t testing.TB, name, config string, more map[string]string) *corev1.ConfigMap {
	t.Helper()
	ctx, cancel := within(t)
	defer cancel()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace}, Immutable: ptr.To(true), Data: map[string]string{"kubelet": config},
	}
	for k, v := range more {
		cm.Data[k] = v
	}
	cm, err := c.Client.CoreV1().ConfigMaps(c.Namespace).Create(ctx, cm, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

// Assign makes the node's NodeConfig name cm; nil asks for the local config.
func (c *Cluster) Assign(t testing.TB, node string, cm *corev1.ConfigMap) {
	t.Helper()
	nc := v1alpha1.NodeConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeConfig"},
		ObjectMeta: metav1.ObjectMeta{Name: node},
	}
	if cm != nil {
		nc.Spec.Source = &v1alpha1.NodeConfigSource{ConfigMapRef: &v1alpha1.ConfigMapRef{
			Namespace: cm.Namespace, Name: cm.Name, UID: string(cm.UID),
		}}
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := within(t)
	defer cancel()
	nodeConfigs := c.dynamic.Resource(v1alpha1.NodeConfigsResource)
	// The agent writes the status of the same object.
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current, err := nodeConfigs.Get(ctx, node, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = nodeConfigs.Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		current.Object["spec"] = object["spec"]
		_, err = nodeConfigs.Update(ctx, current, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// NodeConfig reads the node's NodeConfig.
func (c *Cluster) NodeConfig(t testing.TB, node string) (nc v1alpha1.NodeConfig, err error) {
	t.Helper()
	ctx, cancel := within(t)
	defer cancel()
	object, err := c.dynamic.Resource(v1alpha1.NodeConfigsResource).Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nc, err
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nc, err
	}
	return nc, json.Unmarshal(raw, &nc)
}

// ConfigOK reads the node's condition of that type.
func (c *Cluster) ConfigOK(t testing.TB, node string) (corev1.NodeCondition, error) {
	t.Helper()
	ctx, cancel := within(t)
	defer cancel()
	n, err := c.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return corev1.NodeCondition{}, err
	}
	for _, cond := range n.Status.Conditions {
		if cond.Type == "ConfigOK" {
			return cond, nil
		}
	}
	return corev1.NodeCondition{}, fmt.Errorf("node %q has no condition ConfigOK", node)
}

// Says checks, as an error, that the node's condition is exactly this one.
func (c *Cluster) Says(t testing.TB, node string, status corev1.ConditionStatus, message, reason string) error {
	t.Helper()
	got, err := c.ConfigOK(t, node)
	if err != nil {
		return err
	}
	if got.Status != status || got.Message != message || got.Reason != reason {
		return fmt.Errorf("ConfigOK is %s: %q because %q, want %s: %q because %q", got.Status, got.Message, got.Reason, status, message, reason)
	}
	return nil
}
