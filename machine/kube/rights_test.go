// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	configv1alpha1 "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// asked are the rights that requests have taken, and those that were refused.
type asked struct {
	next    http.RoundTripper
	mu      *sync.Mutex
	taken   map[string]bool
	refused map[string]bool
}

func (a asked) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.next.RoundTrip(r)
	if right := rightOf(r); err == nil && right != "" {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.taken[right] = true
		if resp.StatusCode == http.StatusForbidden {
			a.refused[right] = true
		}
	}
	return resp, err
}

// rightOf is "verb resource" of a request; empty for what is no resource.
func rightOf(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return ""
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodGet: "get"}[r.Method]
	if verb == "get" && len(parts) == 1 {
		if verb = "list"; r.URL.Query().Get("watch") != "" {
			verb = "watch"
		}
	}
	resource := parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return verb + " " + resource
}

// restrict has the controllers work with the rights that this package names, and records what they take.
func (b *bed) restrict() asked {
	b.t.Helper()
	name := "machines-" + b.namespace
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: slices.Concat(kube.MachineRules(), kube.GroupRules(), kube.NodeRules())}
	_, err := b.core.RbacV1().ClusterRoles().Create(b.ctx(), role, metav1.CreateOptions{})
	b.must(err)
	_, err = b.core.RbacV1().ClusterRoleBindings().Create(b.ctx(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}, metav1.CreateOptions{})
	b.must(err)
	config := shared.Env(b.t).User(b.t, name)
	config.QPS = -1
	probe := dynamic.NewForConfigOrDie(config).Resource(v1alpha1.MachinesResource).Namespace(b.namespace)
	b.eventually("the rights", func() (bool, error) {
		_, err := probe.List(b.ctx(), metav1.ListOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	a := asked{mu: &sync.Mutex{}, taken: map[string]bool{}, refused: map[string]bool{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { a := a; a.next = next; return a })
	core, objects := kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	b.machines, err = kube.NewMachines(objects, b.namespace)
	b.must(err)
	b.groups = objects
	configs, err := kube.NewConfigs(objects)
	b.must(err)
	factory := informers.NewSharedInformerFactory(core, 0)
	b.nodes, err = kube.NewNodes(core, factory.Core().V1().Nodes().Informer(), configs)
	b.must(err)
	factory.Start(b.t.Context().Done())
	b.options.Machines, b.options.Nodes, b.options.Secrets = b.machines, b.nodes, kube.Secrets{Client: core}
	return a
}

// apply creates an object as a user does.
func (b *bed) apply(kind, name string, annotations map[string]string, spec map[string]any) {
	b.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind(kind)
	o.SetName(name)
	o.SetAnnotations(annotations)
	resource := v1alpha1.GroupVersion.WithResource(strings.ToLower(kind) + "s")
	_, err := b.dynamic.Resource(resource).Namespace(b.namespace).Create(b.ctx(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	b.must(err)
}

// pool is the spec of a group.
func pool(name string, replicas int64) map[string]any {
	labels := map[string]any{"pool": name}
	return map[string]any{
		"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"providerConfig": map[string]any{"image": "a", "size": "s"}, "deletion": map[string]any{"diskPolicy": "Destroy"},
			"bootstrap":    map[string]any{"secretRef": map[string]any{"name": "join"}},
			"configSource": map[string]any{"configMapRef": map[string]any{"namespace": "default", "name": "c", "uid": "u-1", "key": "kubelet"}},
		}},
	}
}

// R-MA-18 and R-MA-01: the controllers do their work from a deployment's birth to its end with the rights that this package names, none of them is refused, and none
// was named that is not taken. Gets and lists are taken where a watch is behind, or where a server can't begin one with a list.
func TestRightsAreThoseThatAreTaken(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.must(shared.Env(t).InstallCRDs(b.ctx(), configv1alpha1.CRDs()...))
	_, err := b.core.CoreV1().Secrets(b.namespace).Create(b.ctx(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "join"}}, metav1.CreateOptions{})
	b.must(err)
	a := b.restrict()
	b.runGroups()
	scaled := map[string]string{machine.MaxSizeAnnotation: "3"}
	spec := pool("pool", 1)
	spec["strategy"], spec["historyLimit"] = map[string]any{"type": "InPlace"}, int64(0)
	b.apply(v1alpha1.MachineDeploymentKind, "pool", scaled, spec)
	b.apply(v1alpha1.MachineSetKind, "alone", scaled, pool("alone", 0))
	b.apply(v1alpha1.MachineHealthCheckKind, "check", nil, map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"pool": "pool"}}})
	b.ready("pool", 1)
	for i, config := range []string{`{"image":"b"}`, `{"size":"l"}`} {
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"providerConfig":%s}}}}`, config)
		_, err := b.deployments().Patch(b.ctx(), "pool", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		b.must(err)
		b.eventually(fmt.Sprint("edit ", i), func() (bool, error) { return b.oneSet("pool") })
	}
	b.scale("pool", 0)
	b.ready("pool", 0)
	var unused []string
	defer func() {
		if t.Failed() {
			t.Logf("rights that were named and not taken: %v", unused)
		}
	}()
	b.eventually("what is only shown", func() (bool, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		unused = a.unused()
		return len(a.refused) > 0 || len(unused) == 0, nil
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.refused) > 0 {
		t.Errorf("rights that are missing: %v", a.refused)
	}
}

// oneSet says whether a deployment is at its template, with one set left.
func (b *bed) oneSet(name string) (bool, error) {
	u, err := b.deployments().Get(b.ctx(), name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	sets, err := b.dynamic.Resource(v1alpha1.MachineSetsResource).Namespace(b.namespace).List(b.ctx(), metav1.ListOptions{LabelSelector: machine.DeploymentLabel + "=" + name})
	if err != nil {
		return false, err
	}
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	ready, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
	updated, _, _ := unstructured.NestedInt64(u.Object, "status", "updatedReplicas")
	return observed == u.GetGeneration() && updated == 1 && ready == 1 && len(sets.Items) == 1, nil
}

// unused are rights that were named and not taken, but for gets and lists. It is called with the lock.
func (a asked) unused() (rights []string) {
	for _, rule := range slices.Concat(kube.MachineRules(), kube.GroupRules(), kube.NodeRules()) {
		for _, verb := range rule.Verbs {
			right := verb + " " + rule.Resources[0]
			if right == "create nodeconfigs" { // an apply takes it, and does not show it
				continue
			}
			reads := verb == "list" || verb == "get" && rule.Resources[0] != "secrets"
			if !a.taken[right] && !reads {
				rights = append(rights, right)
			}
		}
	}
	return rights
}
