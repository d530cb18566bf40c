// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// asDrainer returns a client's configuration for a user with the rights that drain/kube documents, and no others, whose writes are
// audited.
func (c *cluster) asDrainer(t *testing.T, user string) *rest.Config {
	t.Helper()
	must(t, grant(t.Context(), c.api))
	return c.env.User(t, user, drainers)
}

// grant gives the rights to the group, if it has not got them.
func grant(ctx context.Context, api kubernetes.Interface) error {
	role, hold, err := rights()
	if err != nil {
		return err
	}
	group := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: drainers}
	rbac := api.RbacV1()
	_, err1 := rbac.ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	_, err2 := rbac.Roles(hold.Namespace).Create(ctx, hold, metav1.CreateOptions{})
	_, err3 := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: []rbacv1.Subject{group},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}, metav1.CreateOptions{})
	_, err4 := rbac.RoleBindings(hold.Namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: hold.Name}, Subjects: []rbacv1.Subject{group},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: hold.Name},
	}, metav1.CreateOptions{})
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// rights reads the manifest of drain/kube.
func rights() (*rbacv1.ClusterRole, *rbacv1.Role, error) {
	docs := strings.SplitN(string(kube.RBAC()), "\n---\n", 2)
	role, hold := &rbacv1.ClusterRole{}, &rbacv1.Role{}
	if err := yaml.Unmarshal([]byte(docs[0]), role); err != nil {
		return nil, nil, err
	}
	return role, hold, yaml.Unmarshal([]byte(docs[len(docs)-1]), hold)
}

// A changer gives a Drainer more than it needs.
type changer func(*drain.Options, *kube.Cache, kubernetes.Interface) error

// connect makes a Drainer on the API server, whose cache lives as long as ctx. Reads and writes go through the same config.
func connect(ctx context.Context, config *rest.Config, change changer) (*drain.Drainer, error) {
	return connectWith(ctx, config, kube.CacheOptions{DaemonSets: true}, change)
}

// connectWith is connect with a choice of what the cache watches.
func connectWith(ctx context.Context, config *rest.Config, options kube.CacheOptions, change changer) (*drain.Drainer, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := kube.NewFactory(clientset, options)
	cache, err := kube.NewCache(factory, options)
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if err := cache.WaitForSync(ctx); err != nil {
		return nil, err
	}
	client, err := kube.NewClientForConfig(config, nil, kube.ClientOptions{})
	if err != nil {
		return nil, err
	}
	o := drain.Options{Cache: cache.View(), Client: client}
	if change != nil {
		if err := change(&o, cache, clientset); err != nil {
			return nil, err
		}
	}
	return drain.New(o)
}

func mustConnect(t *testing.T, config *rest.Config, change changer) *drain.Drainer {
	t.Helper()
	d, err := connect(t.Context(), config, change)
	must(t, err)
	return d
}

// setOf asks for a maintenance of all the nodes at once, with a short settle time.
func setOf(holder string, mode drain.Mode, nodes ...string) drain.Set {
	return drain.Set{
		Request: drain.Request{
			Holder: holder, Maintenance: "m1", Mode: mode,
			Policy: drain.Policy{Unmanaged: drain.EvictPods, Settle: ptr.To(100 * time.Millisecond)},
		},
		Groups: [][]string{nodes}, MaxNodes: intstr.FromString("100%"),
	}
}

// marked reports whether a node has our annotation.
func marked(n *corev1.Node) bool {
	_, ok := n.Annotations[drain.MarkAnnotation]
	return ok
}
