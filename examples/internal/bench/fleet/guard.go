// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/configsync/kube"
	configapi "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/internal/agent/apiserver"
	"github.com/belayproject/belay/identity/nodeauth"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

const (
	// guardName is that of the policy, and of the account of the agent, which is in the namespace of its Lease.
	guardName = "belay-agent"
	guardTime = time.Minute // until the API server obeys a policy
)

// guardedUser is whom the API server takes the agent for.
const guardedUser = "system:serviceaccount:" + leases + ":" + guardName

// guardOptions are those of an agent that takes its config from a NodeConfig and updates its node by hooks.
func guardOptions() nodeauth.Options {
	reads, status := []string{"get", "list", "watch"}, []string{"status"}
	return nodeauth.Options{
		Name: guardName, ServiceAccount: types.NamespacedName{Namespace: leases, Name: guardName},
		Resources: []nodeauth.Resource{
			{Group: v1alpha1.GroupVersion.Group, Resource: v1alpha1.NodeShadowsResource.Resource, Verbs: reads, Subresources: status},
			{Group: configapi.GroupVersion.Group, Resource: configapi.NodeConfigsResource.Resource, Verbs: reads, Subresources: status},
			{Group: coordinationv1.GroupName, Resource: "leases", Namespace: leases, Verbs: []string{"get", "create", "update", "delete"}},
		},
		NodeConditions: []corev1.NodeConditionType{"ConfigOK"},
	}
}

// guarded gives the agent an account that is held to its own node, and returns its kubeconfig once the API server obeys the policy.
func (w *world) guarded(ctx context.Context) (kubeconfig string, err error) {
	objects, err := nodeauth.Objects(guardOptions())
	if err != nil {
		return "", err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: guardName, Namespace: leases}}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	objects = append(objects, account)
	objects = append(objects, grant(namespace, kube.ConfigMapRules())...)
	objects = append(objects, grant(apiserver.EventNamespace, apiserver.EventRules())...)
	for _, o := range objects {
		if err := w.create(ctx, o); err != nil {
			return "", err
		}
	}
	config, err := w.account(ctx)
	if err != nil {
		return "", err
	}
	path := filepath.Join(w.dir, "agent.kubeconfig")
	return path, errors.Join(testenv.WriteKubeconfig(path, config), obeyed(ctx, config))
}

// grant gives the agent rights in a namespace.
func grant(namespace string, rules []rbacv1.PolicyRule) []runtime.Object {
	name := metav1.ObjectMeta{Name: guardName, Namespace: namespace}
	role := &rbacv1.Role{ObjectMeta: name, Rules: rules}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("Role"))
	binding := &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: guardName},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: leases, Name: guardName}},
	}
	binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	return []runtime.Object{role, binding}
}

// create makes an object that says of what kind it is.
func (w *world) create(ctx context.Context, o runtime.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: content}
	plural, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	if _, err := w.all.Resource(plural).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating %s %q: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

// account is the connection of a pod on the node: its token names both.
func (w *world) account(ctx context.Context) (*rest.Config, error) {
	pod, err := w.admin.CoreV1().Pods(leases).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: guardName},
		Spec: corev1.PodSpec{
			NodeName: restNode, ServiceAccountName: guardName, AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{Name: "agent", Image: "example.com/agent"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	token, err := w.admin.CoreV1().ServiceAccounts(leases).CreateToken(ctx, guardName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](6 * 3600), BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(w.env.Config())
	config.BearerToken = token.Status.Token
	return config, nil
}

// obeyed returns when the policy refuses what it should.
func obeyed(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	probe := nodeauth.Probe{Policy: guardName, Try: nodeauth.TryLease(client.CoordinationV1().Leases(leases), "nobody")}
	for deadline := time.Now().Add(guardTime); ; {
		err := probe.Once(ctx)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) || !backoff.Sleep(ctx, 200*time.Millisecond) {
			return fmt.Errorf("waiting for the API server to obey the policy: %w", err)
		}
	}
}
