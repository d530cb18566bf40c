// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
)

// A cluster is the shared control plane.
type cluster struct {
	env     *testenv.Env
	admin   kubernetes.Interface
	objects dynamic.Interface
	mapper  meta.ResettableRESTMapper
}

// install is done by the first test that asks for it.
type install struct {
	once sync.Once
	done bool
}

var installation install

// installed is the control plane after "kubectl apply -k" of everything, whose policies are obeyed.
func installed(t *testing.T) *cluster {
	t.Helper()
	c := clusterOf(t, shared.Env(t))
	installation.once.Do(func() {
		c.installAll(t)
		installation.done = true
	})
	if !installation.done {
		t.Fatal("the manifests were not installed: see the first test that failed")
	}
	return c
}

// clusterOf is a control plane as its administrator sees it.
func clusterOf(t *testing.T, env *testenv.Env) *cluster {
	t.Helper()
	c := &cluster{env: env}
	c.admin, c.objects = clients(t, env.Config())
	client, err := discovery.NewDiscoveryClientForConfig(env.Config())
	must(t, err)
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	return c
}

func clients(t testing.TB, config *rest.Config) (kubernetes.Interface, dynamic.Interface) {
	t.Helper()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	core, err := kubernetes.NewForConfig(config)
	must(t, err)
	objects, err := dynamic.NewForConfig(config)
	must(t, err)
	return core, objects
}

// installAll follows the order that examples/manifests/kustomization.yaml gives, and adds agents on hosts.
func (c *cluster) installAll(t *testing.T) {
	t.Helper()
	c.define(t, build(t, "crds"))
	must(t, c.env.InstallCRDs(t.Context(), []byte(read(t, "testdata/monitoring-crds.yaml"))))
	c.mapper.Reset()
	c.apply(t, build(t, "policies"))
	c.apply(t, guards(t))
	c.apply(t, build(t, "."))
	c.apply(t, build(t, "monitoring"))
	c.apply(t, build(t, "host-agent"))
}

// guards are what guard.yaml of the agents in pods has.
func guards(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return only(build(t, "agent"), "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "FlowSchema")
}

// define makes definitions, and waits until they are served.
func (c *cluster) define(t *testing.T, definitions []*unstructured.Unstructured) {
	t.Helper()
	for _, u := range definitions {
		text, err := yaml.Marshal(u.Object)
		must(t, err)
		must(t, c.env.InstallCRDs(t.Context(), text))
	}
	c.mapper.Reset()
}

// apply makes objects as kubectl apply --server-side does, in its order of kinds. An unknown field, or one that stands twice, is an error.
func (c *cluster) apply(t *testing.T, all []*unstructured.Unstructured) {
	t.Helper()
	all = slices.Clone(all)
	early := []string{"Namespace", "ServiceAccount", "PriorityLevelConfiguration", "ValidatingAdmissionPolicy", "ClusterRole", "Role"}
	rank := func(u *unstructured.Unstructured) int {
		if i := slices.Index(early, u.GetKind()); i >= 0 {
			return i
		}
		return len(early)
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return cmp.Compare(rank(a), rank(b)) })
	for _, u := range all {
		api := c.api(t, u.GroupVersionKind(), u.GetNamespace())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := api.Patch(ctx, u.GetName(), types.ApplyPatchType, encoded(t, u), metav1.PatchOptions{
			FieldManager: "test", Force: new(true), FieldValidation: metav1.FieldValidationStrict,
		})
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", key(u), err)
		}
		if u.GetKind() == "ResourceQuota" {
			c.computed(t, typed[corev1.ResourceQuota](t, u))
		}
	}
}

// computed gives a quota the status that the controller manager would give it: without one the server admits no pod that it is of.
func (c *cluster) computed(t *testing.T, q *corev1.ResourceQuota) {
	t.Helper()
	eventually(t, "the quota "+q.Name+" must have a status", func() error {
		is, err := c.admin.CoreV1().ResourceQuotas(q.Namespace).Get(t.Context(), q.Name, metav1.GetOptions{})
		if err != nil || len(is.Status.Hard) > 0 {
			return err
		}
		is.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}
		_, err = c.admin.CoreV1().ResourceQuotas(q.Namespace).UpdateStatus(t.Context(), is, metav1.UpdateOptions{})
		return err
	})
}

// api is the administrator's client for a kind. A kind without namespaces must not name one, and the other way round.
func (c *cluster) api(t *testing.T, kind schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	t.Helper()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	must(t, err)
	if namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace; namespaced != (namespace != "") {
		t.Fatalf("%s: the namespace is %q, and the kind has namespaces: %t", kind, namespace, namespaced)
	}
	if namespace == "" {
		return c.objects.Resource(mapping.Resource)
	}
	return c.objects.Resource(mapping.Resource).Namespace(namespace)
}

// eventually waits until done returns nil. The server takes a moment to obey roles, policies and schemas.
func eventually(t testing.TB, rule string, done func() error) {
	t.Helper()
	within(t, patience, rule, done)
}

// within is eventually with a patience of its own.
func within(t testing.TB, patience time.Duration, rule string, done func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	pace := testproc.NewPace()
	for {
		err := done()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: after %s: %v", rule, patience, err)
		case <-pace.Next():
		}
	}
}

// Every object of every base is taken by a real API server that refuses what it does not know; and none of them is in the namespace "default",
// where a forgotten namespace would put it.
func TestServerTakesEverything(t *testing.T) {
	c := installed(t)
	for _, base := range []string{"machines", "node-maintenance"} {
		c.apply(t, build(t, base))
		defer c.unbind(t, build(t, base)) // other tests are about the rights of the whole
	}
	for _, base := range bases(t) {
		for _, u := range build(t, base) {
			if u.GetNamespace() == corev1.NamespaceDefault {
				t.Errorf("%s of %s is in the namespace default", key(u), base)
			}
			got, err := c.api(t, u.GroupVersionKind(), u.GetNamespace()).Get(t.Context(), u.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Errorf("%s of %s: %v", key(u), base, err)
				continue
			}
			if lost := dropped(u.Object, got.Object, ""); len(lost) > 0 {
				t.Errorf("%s of %s: the server has not kept %s", key(u), base, strings.Join(lost, ", "))
			}
		}
	}
}

// unbind takes away what gives rights to somebody.
func (c *cluster) unbind(t *testing.T, all []*unstructured.Unstructured) {
	t.Helper()
	for _, u := range only(all, "ClusterRoleBinding", "RoleBinding") {
		must(t, c.api(t, u.GroupVersionKind(), u.GetNamespace()).Delete(t.Context(), u.GetName(), metav1.DeleteOptions{}))
	}
}

// dropped are the fields of want that got does not have. Values may have been put into another form, and empty ones left out.
func dropped(want, got any, at string) (lost []string) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok && len(w) > 0 {
			return []string{at}
		}
		for k, v := range w {
			if have, there := g[k]; there {
				lost = append(lost, dropped(v, have, at+"."+k)...)
			} else if v != nil && fmt.Sprint(v) != "map[]" && fmt.Sprint(v) != "[]" && fmt.Sprint(v) != "" {
				lost = append(lost, at+"."+k)
			}
		}
	case []any:
		g, _ := got.([]any)
		if len(g) < len(w) {
			return []string{at}
		}
		for i := range w {
			lost = append(lost, dropped(w[i], g[i], fmt.Sprintf("%s[%d]", at, i))...)
		}
	}
	slices.Sort(lost)
	return lost
}
