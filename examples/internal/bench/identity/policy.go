// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/identity/nodeauth"
)

// An office is a node with two agents on it: one that the policy guards, and one that may write the same and is not guarded.
type office struct {
	world     *world
	namespace string
	node      *corev1.Node
	guarded   *clerk
	free      *clerk
	binding   *admissionregistrationv1.ValidatingAdmissionPolicyBinding
	bound     bool
}

// A clerk is an agent by its pod-bound token.
type clerk struct {
	typed   kubernetes.Interface
	dynamic dynamic.Interface
	lease   *coordinationv1.Lease
}

// A write is one of those that agents live by. n makes it a change.
type write struct {
	name string
	do   doing
	// weight is about the size of the object, in bytes.
	weight int
}

type doing func(ctx context.Context, o *office, c *clerk, n int) error

func writes() []write {
	return []write{{"lease", renewLease, 500}, {"node-status", writeCondition, 16 << 10}, {"config-status", writeConfigStatus, 500}}
}

// policy is I6.
func policy(ctx context.Context, b *bench) error {
	rounds, count := 32, 100
	if b.quick {
		rounds, count = 6, 40
	}
	w, err := b.world(ctx)
	if err != nil {
		return err
	}
	o, err := newOffice(ctx, w)
	if err != nil {
		return err
	}
	all := map[string][]round{}
	for n := range rounds + 1 {
		first := n%2 == 1 // off and on change places, which also saves half of the changes
		r, err := o.round(ctx, count, first)
		if err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		for name, took := range r {
			if n > 0 { // the first one warms up
				all[name] = append(all[name], *took)
			}
		}
	}
	for _, write := range writes() {
		b.print(overhead(write.name, all[write.name], count))
	}
	return nil
}

// renewLease writes the agent's Lease as a member does. Both agents write the same one, so it is read outside of what is measured.
func renewLease(ctx context.Context, o *office, c *clerk, _ int) error {
	next := *c.lease
	next.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	l, err := c.typed.CoordinationV1().Leases(o.namespace).Update(ctx, &next, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	o.free.lease, o.guarded.lease = l, l
	return nil
}

func writeCondition(ctx context.Context, o *office, c *clerk, n int) error {
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"ConfigOK","status":"True","reason":"N%d"}]}}`, n)
	_, err := c.typed.CoreV1().Nodes().Patch(ctx, o.node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func writeConfigStatus(ctx context.Context, o *office, c *clerk, n int) error {
	patch := fmt.Appendf(nil, `{"status":{"observedGeneration":%d}}`, n)
	_, err := c.dynamic.Resource(v1alpha1.NodeConfigsResource).
		Patch(ctx, o.node.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// beat writes a ConfigMap of the same size: no policy is for ConfigMaps.
func beat(w write) doing {
	return func(ctx context.Context, o *office, c *clerk, n int) error {
		patch := fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n)
		_, err := c.typed.CoreV1().ConfigMaps(o.namespace).Patch(ctx, "pace-"+w.name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
}

// newOffice makes the node, the accounts with equal rights, and the objects that they write.
func newOffice(ctx context.Context, w *world) (*office, error) {
	if err := w.env.InstallCRDs(ctx, v1alpha1.CRDs()...); err != nil {
		return nil, err
	}
	namespace, err := w.namespace(ctx)
	if err != nil {
		return nil, err
	}
	o := &office{world: w, namespace: namespace}
	if o.node, err = w.env.CreateNode(ctx, namespace+"-node"); err != nil {
		return nil, err
	}
	if o.node, err = fill(ctx, w.admin, o.node); err != nil {
		return nil, err
	}
	for name, c := range map[string]**clerk{"agent": &o.guarded, "free": &o.free} {
		if *c, err = o.clerk(ctx, name); err != nil {
			return nil, fmt.Errorf("account %q: %w", name, err)
		}
	}
	return o, errors.Join(o.furnish(ctx), o.guard(ctx))
}

// furnish makes what the agents write. Both belong to the Node.
func (o *office) furnish(ctx context.Context) error {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: o.node.Name, UID: o.node.UID}
	h := heart{name: "agent-" + o.node.Name}
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: h.name, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &h.name},
	}
	l, err := o.world.admin.CoordinationV1().Leases(o.namespace).Create(ctx, l, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	o.free.lease, o.guarded.lease = l, l
	for _, w := range writes() {
		paces := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "pace-" + w.name}, Data: map[string]string{"weight": strings.Repeat("0123456789abcdef", w.weight/16)}}
		if _, err := o.world.admin.CoreV1().ConfigMaps(o.namespace).Create(ctx, paces, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	config.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.NodeConfigKind))
	config.SetName(o.node.Name)
	config.SetOwnerReferences([]metav1.OwnerReference{owner})
	return o.create(ctx, config)
}

// clerk makes an account with a pod on the node.
func (o *office) clerk(ctx context.Context, name string) (*clerk, error) {
	admin := o.world.admin
	wide := o.namespace + "-" + name
	for _, object := range []runtime.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: o.namespace}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: wide}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"", v1alpha1.GroupVersion.Group, coordinationv1.GroupName}, Verbs: []string{"*"},
			Resources: []string{"nodes", "nodes/status", "nodeconfigs", "nodeconfigs/status", "leases", "configmaps"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: wide}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: wide},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: o.namespace, Name: name}},
		},
	} {
		if err := o.create(ctx, object); err != nil {
			return nil, err
		}
	}
	pod, err := admin.CoreV1().Pods(o.namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: o.node.Name, ServiceAccountName: name, AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "agent", Image: "example.com/agent"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	token, err := admin.CoreV1().ServiceAccounts(o.namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600)), BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return newClerk(o.world.env.Config(), token.Status.Token)
}

func newClerk(config *rest.Config, token string) (*clerk, error) {
	config = rest.AnonymousClientConfig(config)
	config.BearerToken, config.QPS, config.WarningHandler = token, -1, rest.NoWarnings{}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	typed, err := kubernetes.NewForConfig(fast(config))
	return &clerk{typed: typed, dynamic: objects}, err
}

// guard puts everything in place but the policy's binding, without which the policy does nothing.
func (o *office) guard(ctx context.Context) error {
	objects, err := nodeauth.Objects(nodeauth.Options{
		Name: o.namespace, ServiceAccount: types.NamespacedName{Namespace: o.namespace, Name: "agent"},
		Resources: []nodeauth.Resource{
			{Group: v1alpha1.GroupVersion.Group, Resource: "nodeconfigs", Verbs: []string{"get", "list", "watch"}, Subresources: []string{"status"}},
			{Group: coordinationv1.GroupName, Resource: "leases", Namespace: o.namespace, Prefix: "agent-", Verbs: []string{"get", "create", "update", "delete"}},
		},
		NodeConditions: []corev1.NodeConditionType{"ConfigOK"},
	})
	if err != nil {
		return err
	}
	for _, object := range objects {
		if binding, ok := object.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding); ok {
			o.binding = binding
			continue
		}
		if err := o.create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// bind turns the policy on or off, and waits until that is so.
func (o *office) bind(ctx context.Context, on bool) error {
	if on == o.bound {
		return nil
	}
	var err error
	if bindings := o.world.admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings(); on {
		_, err = bindings.Create(ctx, o.binding, metav1.CreateOptions{})
	} else {
		err = bindings.Delete(ctx, o.binding.Name, metav1.DeleteOptions{})
	}
	if err != nil {
		return fmt.Errorf("turning the policy on (%t): %w", on, err)
	}
	o.bound = on
	probe := nodeauth.TryLease(o.guarded.typed.CoordinationV1().Leases(o.namespace), "agent-nobody")
	return await(ctx, fmt.Sprintf("the policy to be on: %t", on), time.Minute, func() bool {
		err := probe(ctx)
		return on && apierrors.IsForbidden(err) || !on && err == nil
	})
}

// create makes an object of any kind as the administrator.
func (o *office) create(ctx context.Context, object runtime.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: content}
	if u.GetKind() == "" {
		kinds, _, err := scheme.Scheme.ObjectKinds(object)
		if err != nil {
			return err
		}
		u.SetGroupVersionKind(kinds[0])
	}
	client, err := dynamic.NewForConfig(o.world.env.Config())
	if err != nil {
		return err
	}
	plural, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	_, err = client.Resource(plural).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{})
	if err != nil {
		return errors.Join(fmt.Errorf("creating %s %q", u.GetKind(), u.GetName()), err)
	}
	return nil
}
