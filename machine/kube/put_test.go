// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// newer are the definitions of a version that has more fields in each spec, and within its parts.
func newer(t *testing.T) (all [][]byte) {
	t.Helper()
	for _, text := range v1alpha1.CRDs() {
		crd := map[string]any{}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
		if err != nil {
			t.Fatal(err)
		}
		schema, _, err := unstructured.NestedFieldNoCopy(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec") //nolint:forcetypeassert // see the YAML
		if err != nil {
			t.Fatal(err)
		}
		open(schema)
		if err := unstructured.SetNestedSlice(crd, versions, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
		out, err := yaml.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, out)
	}
	return all
}

// open lets every object of a schema keep what it does not name.
func open(schema any) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	properties, ok := s["properties"].(map[string]any)
	if !ok {
		return
	}
	s["x-kubernetes-preserve-unknown-fields"] = true
	for _, p := range properties {
		open(p)
		if list, ok := p.(map[string]any); ok {
			open(list["items"])
		}
	}
}

// newerStage has a machine and a set of the newer version on a control plane of its own, and the store of this one.
func newerStage(t *testing.T) (dynamic.Interface, kube.Groups, controller.Group) {
	t.Helper()
	env := testenv.Start(t, testenv.Options{})
	if err := env.InstallCRDs(t.Context(), newer(t)...); err != nil {
		t.Fatal(err)
	}
	client := dynamic.NewForConfigOrDie(env.Config())
	config := func() map[string]any {
		return map[string]any{
			"future": "kept", "deletion": map[string]any{"future": "kept", "hooks": []any{
				map[string]any{"name": "a", "owner": "x", "phase": "BeforeDrain", "future": "kept"}, map[string]any{"name": "b", "owner": "x", "phase": "BeforeStop"},
			}},
			"versions": map[string]any{"kubelet": "v1.36.1", "future": "kept"}, "providerConfig": map[string]any{"gone": "x", "none": nil},
		}
	}
	labels := map[string]any{"pool": "a"}
	for resource, spec := range map[schema.GroupVersionResource]map[string]any{
		v1alpha1.MachinesResource: config(),
		v1alpha1.MachineSetsResource: {
			"future": "kept", "replicas": int64(1), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"future": "kept", "metadata": map[string]any{"labels": labels}, "spec": config()},
		},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		o.SetAPIVersion(v1alpha1.GroupVersion.String())
		o.SetKind(map[string]string{"machines": v1alpha1.MachineKind, "machinesets": v1alpha1.MachineSetKind}[resource.Resource])
		o.SetName("a")
		o.SetFinalizers([]string{"acme.dev/theirs"})
		if _, err := client.Resource(resource).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	_, groups := newStores(t, client, "default")
	return client, groups, read(t, groups)
}

func read(t *testing.T, groups kube.Groups) controller.Group {
	t.Helper()
	group, err := groups.Read(t.Context(), "default", true)
	if err != nil || len(group.Machines) != 1 || len(group.Sets) != 1 {
		t.Fatalf("%+v, %v", group, err)
	}
	return group
}

// wantKept checks what a write of an older controller has made of an object whose spec is at a path.
func wantKept(t *testing.T, client dynamic.Interface, resource schema.GroupVersionResource, path []string) {
	t.Helper()
	u, err := client.Resource(resource).Namespace("default").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range [][]string{{"future"}, {"deletion", "future"}, {"versions", "future"}} {
		if got, _, _ := unstructured.NestedString(u.Object, append(append([]string(nil), path...), at...)...); got != "kept" {
			t.Errorf("R-MA-16: %s: %v of its spec is %q: %v", resource.Resource, at, got, u.Object["spec"])
		}
	}
	hooks, _, _ := unstructured.NestedSlice(u.Object, append(append([]string(nil), path...), "deletion", "hooks")...)
	if want := []any{map[string]any{"name": "a", "owner": "y", "phase": "BeforeDrain", "future": "kept"}}; !reflect.DeepEqual(hooks, want) {
		t.Errorf("R-MA-16: %s: its hooks are %v, want %v", resource.Resource, hooks, want)
	}
	kubelet, _, _ := unstructured.NestedString(u.Object, append(append([]string(nil), path...), "versions", "kubelet")...)
	if owners := u.GetOwnerReferences(); kubelet != "v1.36.2" || len(owners) != 1 || len(u.GetFinalizers()) != 1 {
		t.Errorf("%s: kubelet %q, owners %v, finalizers %v", resource.Resource, kubelet, owners, u.GetFinalizers())
	}
}

// R-MA-16: a controller that is older than the definitions, or than whoever else writes by them, changes what it knows and keeps the rest: of a machine that goes to
// another set, and of a set that is scaled and gets another owner. What is null in a provider's config stays so.
func TestWritesKeepWhatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	client, groups, group := newerStage(t)
	m, s := group.Machines[0], group.Sets[0]
	m.Spec.Versions.Kubelet, m.Spec.Config = "v1.36.2", []byte(`{"none":null,"new":null}`)
	m.Labels = map[string]string{"pool": "b"}
	for _, spec := range []*machine.Spec{&m.Spec, &s.Spec.Template.Spec} {
		spec.Deletion.Hooks = []machine.Hook{{Name: "a", Owner: "y", Phase: machine.BeforeDrain}}
	}
	s.Spec.Replicas, s.Spec.Template.Spec.Versions.Kubelet = 2, "v1.36.2"
	for _, write := range []func() error{
		func() error { return groups.PutMachine(t.Context(), m) }, func() error { return groups.PutSet(t.Context(), s) },
		func() error {
			m := read(t, groups).Machines[0]
			return groups.OwnMachine(t.Context(), machine.Choice{Key: m.Key, UID: m.UID, Version: m.Version}, machine.Owner{UID: "u", Name: "s"})
		},
		func() error {
			s := read(t, groups).Sets[0]
			return groups.OwnSet(t.Context(), machine.Choice{Key: s.Key, UID: s.UID, Version: s.Version}, machine.Owner{UID: "u", Name: "d"})
		},
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	for resource, path := range map[schema.GroupVersionResource][]string{v1alpha1.MachinesResource: {"spec"}, v1alpha1.MachineSetsResource: {"spec", "template", "spec"}} {
		wantKept(t, client, resource, path)
	}
	written := read(t, groups)
	config, replicas := string(written.Machines[0].Spec.Config), written.Sets[0].Spec.Replicas
	if config != `{"new":null,"none":null}` || replicas != 2 || !reflect.DeepEqual(written.Machines[0].Labels, m.Labels) {
		t.Errorf("config %s, replicas %d, labels %v", config, replicas, written.Machines[0].Labels)
	}
	if err := groups.PutMachine(t.Context(), m); err == nil {
		t.Error("a version that is not the present one was written over it")
	}
}
