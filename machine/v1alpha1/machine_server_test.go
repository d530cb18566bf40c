// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/v1alpha1"
)

func machines(t *testing.T) *served { return serve(t, v1alpha1.MachineKind, v1alpha1.MachinesResource) }

// everything is the spec of a machine with all that it may have.
const everything = `
versions: {kubelet: v1.36.3, runtime: {name: containerd, version: 2.1.4}, other: {kernel: 6.12.9}}
roles: [control-plane, etcd]
taints: [{key: example.com/a, value: b, effect: NoSchedule}, {key: example.com/a, effect: NoExecute}]
nodeMetadata: {labels: {example.com/pool: web, empty: ""}, annotations: {example.com/x: "any text"}}
configSource: {configMapRef: {namespace: configs, name: pool-a, uid: u-1, key: kubelet}}
bootstrap: {secretRef: {name: join}}
credentials: {secretRef: {name: cloud}}
providerConfig: {apiVersion: acme.dev/v1, kind: Config, nested: {list: [{deep: true}]}}
updatePolicy: Manual
deletion:
  drainTimeout: 1h
  nodeTimeout: 5m
  diskPolicy: Retain
  retainFor: 720h
  hooks: [{name: etcd, owner: etcd-operator, phase: BeforeStop, timeout: 10m}, {name: note, owner: me, phase: BeforeDrain}]
providerID: acme:///zone-a/row
adopt: c1-u1-1
decommission: true
paused: true
`

const (
	positive = ", above 0"
	aVersion = "kubelet must be a version like v1.36.3"
	anID     = "providerID must be like scheme:///zone/token"
)

// R-MA-17: the server knows every field, and refuses what contradicts itself with what would be right.
func TestServerChecksMachines(t *testing.T) {
	s := machines(t)
	s.rows(slices.Concat(configRows(), [][2]string{
		{"{}", ""},
		{everything, ""},
		{"replicas: 1", unknown},
		{"providerID: 'acme://token'", anID},
		{"providerID: 'acme:///zone/'", anID},
		{"providerID: 'zone/token'", anID},
		{"providerID: 'acme:///zone/Token'", anID},
		{"providerID: 'acme:///zone/-token'", anID},
		{"providerID: 'acme:///zone/" + strings.Repeat("a", 64) + "'", anID},
		{"providerID: 'acme://" + strings.Repeat("a/", 260) + "b'", "Too long"},
		{"providerID: ''", anID},
		{"providerID: 'acme:///" + strings.Repeat("a", 63) + "'", ""},
		{"providerID: 'acme+x.1://host/a/b/c-1'", ""},
		{"adopt: ''", "adopt must be a token"},
		{"adopt: A", "adopt must be a token"},
		{"adopt: c1-u1-1", ""},
	}))
	machineChanges(s)
	s.eachRule()
}

// The server and package provider have the same notion of a ProviderID that names a token.
func TestProviderIDsHaveTokens(t *testing.T) {
	token := provider.Token("cluster", "uid", 12)
	s := machines(t)
	for _, id := range []string{
		provider.ProviderID("fake", "zone-a", token), provider.ProviderID("ssh", "", token), provider.ProviderID("x+y.z-1", "a/B_c", "0"),
		"acme://token", "acme:/zone/token", "acme:///zone/", "acme:///zone/Token", "acme:///zone/to.ken", "acme:///zone/token-", token, "",
	} {
		want := anID
		if provider.TokenOf(id) != "" {
			want = ""
		}
		s.rows([][2]string{{"providerID: '" + id + "'", want}})
	}
}

// configRows are parts of specs that machines and templates have, and what the server has against them.
func configRows() (rows [][2]string) {
	rows = [][2]string{
		{"versions: {kubelet: 1.36.3}", aVersion},
		{"versions: {kubelet: v1.36}", aVersion},
		{"versions: {kubelet: v1.36.3+k3s1}", ""},
		{"versions: {kubelet: v1.37.0-rc.1}", ""},
		{"versions: {runtime: {name: containerd}}", ""},
		{"versions: {}", ""},
		{"roles: ['']", "at least 1 chars long"},
		{"roles: [a, a]", "Duplicate value"},
		{"roles: [Worker]", "should match"},
		{"roles: [" + strings.TrimSuffix(strings.Repeat("a,", 17), ",") + "]", "Too many"},
		{"taints: [{key: a, effect: NoSchedule}, {key: a, value: x, effect: NoSchedule}]", "Duplicate value"},
		{"taints: [{key: a, effect: Evict}]", "Unsupported value"},
		{"taints: [{key: a}]", "effect: Required value"},
		{"taints: [{effect: NoSchedule}]", "key: Required value"},
		{"taints: [{key: 'a b', effect: NoSchedule}]", "should match"},
		{"taints: [{key: a, value: 'a b', effect: NoSchedule}]", "should match"},
		{"nodeMetadata: {labels: {a: 'x y'}}", "should match"},
		{"nodeMetadata: {labels: {a: " + strings.Repeat("a", 64) + "}}", "Too long"},
		{"nodeMetadata: {taints: []}", unknown},
		{"configSource: {configMapRef: {namespace: a, name: b}}", "must have a uid or a digest, or the policy Follow"},
		{"configSource: {}", "exactly one subfield must be non-nil"},
		{"bootstrap: {}", "secretRef: Required value"},
		{"bootstrap: {secretRef: {}}", "name: Required value"},
		{"bootstrap: {token: x}", unknown},
		{"credentials: {secretRef: {name: ''}}", "should match"},
		{"credentials: {secretRef: {name: a, namespace: b}}", unknown},
		{"providerConfig: []", "must be of type object"},
		{"providerConfig: text", "must be of type object"},
		{"providerConfig: {}", ""},
		{"updatePolicy: Never", "Unsupported value"},
		{"deletion: {diskPolicy: Keep}", "Unsupported value"},
		{"deletion: {diskPolicy: Destroy, retainFor: 1h}", "retainFor goes with diskPolicy: Retain only"},
		{"deletion: {retainFor: 1h}", ""},
		{"deletion: {diskPolicy: Destroy}", ""},
		{"deletion: {drainTimeout: 0s}", "must be a duration such as 1h" + positive + "; without one the drain has no limit"},
		{"deletion: {drainTimeout: soon}", "must be a duration such as 1h" + positive},
		{"deletion: {nodeTimeout: -1s}", "must be a duration such as 10m" + positive},
		{"deletion: {retainFor: 0s}", "must be a duration such as 720h" + positive + "; without one disks are kept for ever"},
		{"deletion: {hooks: [{name: a, owner: b, phase: BeforeStop}, {name: a, owner: c, phase: BeforeDrain}]}", "Duplicate value"},
		{"deletion: {hooks: [{name: a, owner: b, phase: AfterStop}]}", "Unsupported value"},
		{"deletion: {hooks: [{name: a, phase: BeforeStop}]}", "owner: Required value"},
		{"deletion: {hooks: [{name: a, owner: b}]}", "phase: Required value"},
		{"deletion: {hooks: [{name: a, owner: b, phase: BeforeStop, timeout: 0s}]}",
			"must be a duration such as 10m" + positive + "; without one the hook has no limit"},
	}
	return rows
}

// machineChanges are writes to machines that are there already.
func machineChanges(s *served) {
	s.t.Helper()
	const id1, id2 = "acme:///zone-a/t-1", "acme:///zone-a/t-2"
	s.create("new", "{}")
	s.create("named", "{providerID: '"+id1+"'}")
	s.create("adopting", "{adopt: c1-u1-1}")
	s.create("known", "{}")
	s.judge("an intent", s.merge("known", "status: {incarnation: 1, token: t-1}", "status"), "")
	s.judge("the instance of the token", s.merge("known", "spec: {providerID: '"+id1+"'}"), "")
	for _, c := range []struct{ name, object, patch, want string }{
		{"another adopt", "adopting", "spec: {adopt: c1-u1-2}", "spec.adopt must not change"},
		{"no adopt", "adopting", "spec: {adopt: null}", "spec.adopt must not change"},
		{"adopt later", "new", "spec: {adopt: c1-u1-1}", "spec.adopt must not change"},
		{"no providerID", "named", "spec: {providerID: null}", "spec.providerID must not be removed"},
		{"the same instance elsewhere", "named", "spec: {providerID: 'acme:///zone-b/t-1'}", "spec.providerID must not change for the same instance"},
		{"another instance, nothing known", "named", "spec: {providerID: '" + id2 + "'}", ""},
		{"another instance", "known", "spec: {providerID: '" + id2 + "'}", "the last path segment of spec.providerID must be status.token"},
		{"something else", "known", "spec: {paused: true, versions: {kubelet: v1.36.3}}", ""},
	} {
		s.judge(c.name, s.merge(c.object, c.patch), c.want)
	}
	for _, c := range []struct{ name, patch, want string }{
		{"an older incarnation", "status: {incarnation: 0}", "greater than or equal to 1"},
		{"no incarnation", "status: {incarnation: null}", "status.incarnation must not decrease"},
		{"no token", "status: {token: null}", "status.token must stay"},
		{"another token", "status: {token: t-2}", "status.token must stay"},
		{"no status", "status: null", "status.incarnation must not decrease"},
		{"a phase", "status: {phase: Running}", ""},
		{"no such phase", "status: {phase: Sleeping}", "Unsupported value"},
		{"the next incarnation", "status: {incarnation: 3, token: t-2}", ""},
		{"an older incarnation again", "status: {incarnation: 2, token: t-3}", "status.incarnation must not decrease"},
	} {
		s.judge(c.name, s.merge("known", c.patch, "status"), c.want)
	}
	s.judge("the next instance", s.merge("known", "spec: {providerID: '"+id2+"'}"), "")
	s.judge("the old one again", s.merge("known", "spec: {providerID: '"+id1+"'}"), "the last path segment of spec.providerID must be status.token")
}

// R-MA-16: spec and status are written apart: who may write one can't write the other, and the generation counts the spec alone.
func TestSpecAndStatusAreApart(t *testing.T) {
	s := machines(t)
	u := s.object("apart", "{}")
	u.Object["status"] = map[string]any{"phase": "Running"}
	made, err := s.Create(deadline(t), u, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, found := made.Object["status"]; found {
		t.Errorf("a write of the spec made the status %v, want none", got)
	}
	made.Object["status"] = map[string]any{"phase": "Pending"}
	made.Object["spec"] = map[string]any{"paused": true}
	made, err = s.UpdateStatus(deadline(t), made, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	phase, _, _ := unstructured.NestedString(made.Object, "status", "phase")
	if paused, found, _ := unstructured.NestedBool(made.Object, "spec", "paused"); found || phase != "Pending" || made.GetGeneration() != 1 {
		t.Errorf("a write of the status: paused is %t, phase %q, generation %d, want no spec, Pending, 1", paused, phase, made.GetGeneration())
	}
}

// typed reads an object of the server.
func typed[T any](t *testing.T, u *unstructured.Unstructured) *T {
	t.Helper()
	raw, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	o := new(T)
	if err := json.Unmarshal(raw, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// untyped makes an object for the server.
func untyped(t *testing.T, o any) *unstructured.Unstructured {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: m}
}

// fullStatus is a status with every field set, and with values that the server accepts.
func fullStatus(t *testing.T) machine.Status {
	t.Helper()
	var c machine.Status
	(&filler{t: t}).fill(reflect.ValueOf(&c).Elem())
	c.Phase, c.Release.Mode, c.Token, c.Incarnation = machine.PhaseFailed, provider.Destroy, "row", 1
	return c
}

// R-MA-17, R-MA-16: the server gives back every field that package machine knows, of the spec and of the status, and prunes nothing.
func TestServerKeepsEverything(t *testing.T) {
	s := machines(t)
	made := typed[v1alpha1.Machine](t, s.create("full", everything, "labels: {a: b}\nannotations: {c: d}\nfinalizers: ["+v1alpha1.Finalizer+"]"))
	c := core(t, made)
	if c.Generation != 1 || c.UID == "" || c.Version == "" || c.Created.IsZero() || !c.Finalizer || c.Labels["a"] != "b" || c.Annotations["c"] != "d" {
		t.Errorf("got %+v, want what the server has made of it", c)
	}
	c.Status = fullStatus(t)
	made.SetStatus(c, nil, now())
	u, err := s.UpdateStatus(deadline(t), untyped(t, made), metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	got := typed[v1alpha1.Machine](t, u)
	c.Version = got.ResourceVersion
	if diff := cmp.Diff(c, core(t, got)); diff != "" {
		t.Errorf("the machine came back from the server as another one (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(made.Status.Conditions, got.Status.Conditions); diff != "" {
		t.Errorf("its conditions (-want +got):\n%s", diff)
	}
	c.Spec.Desired.Versions.Kubelet = "v1.36.4"
	if err := got.SetCore(c); err != nil {
		t.Fatal(err)
	}
	if u, err = s.Update(deadline(t), untyped(t, got), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Generation, c.Version = 2, u.GetResourceVersion()
	if diff := cmp.Diff(c, core(t, typed[v1alpha1.Machine](t, u))); diff != "" {
		t.Errorf("written again, the machine came back as another one (-want +got):\n%s", diff)
	}
}

// R-MA-08: the server adds nothing to the provider's part, drops nothing, and defaults nothing. It stores JSON in one form, with sorted keys and no
// white space, and gives the same bytes whenever it is asked, by whom ever it is written; so does YAML that never saw a server, so that a digest stays
// when a machine moves into the cluster. Only numbers that Go has no room for are rounded, as integers beyond 64 bits, and 1.0 becomes 1.
func TestServerKeepsTheProviderConfig(t *testing.T) {
	s := machines(t)
	for name, c := range map[string]struct{ config, want string }{
		"nested":  {`{ "b": [ {"z": 1, "a": [[], {}, ""]} ], "a": {"deep": {"er": {"kind": "X", "apiVersion": "y", "metadata": {"name": 5}}}} }`, ""},
		"nothing": {`{"null": null, "false": false, "zero": 0, "empty": "", "list": [null]}`, ""},
		"texts":   {`{"a": "<&>é\u2028\t\"", "ключ": "☃", "x y": "  "}`, ""},
		"numbers": {`{"max": 9223372036854775807, "min": -9223372036854775808, "half": 0.5, "small": 1e-7, "precise": 0.1234567890123456}`, ""},
		"lossy":   {`{"a": 12345678901234567890, "b": 1.0}`, `{"a":12345678901234567000,"b":1}`},
		"own":     {`{"spec": {"providerID": 1}, "status": {"token": null}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := machineOf(t, machine.Machine{
				Key: machine.Key{Namespace: s.namespace, Name: name}, Spec: machine.Spec{Desired: provider.Desired{Config: []byte(c.config)}},
			})
			u, err := s.Create(deadline(t), untyped(t, m), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Fatal(err)
			}
			first := core(t, typed[v1alpha1.Machine](t, u)).Spec
			if want := c.want; want != "" && string(first.Config) != want {
				t.Errorf("got %s, want %s", first.Config, want)
			}
			if want := numbers(t, []byte(c.config)); c.want == "" && !reflect.DeepEqual(numbers(t, first.Config), want) {
				t.Errorf("got %s, want the content of %s", first.Config, c.config)
			}
			checkSame(t, s, name, first)
			if file := fromFile(t, c.config); c.want == "" && !bytes.Equal(file, first.Config) {
				t.Errorf("from a file it is %s, from the server %s", file, first.Config)
			}
		})
	}
}

// numbers decodes JSON with its numbers as they are written.
func numbers(t *testing.T, raw []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// checkSame checks that a machine has the same digest after it was written again, whole and by a patch.
func checkSame(t *testing.T, s *served, name string, want machine.Spec) {
	t.Helper()
	u, err := s.Get(deadline(t), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m := typed[v1alpha1.Machine](t, u)
	c := core(t, m)
	c.Labels = map[string]string{"written": "again"}
	if err := m.SetCore(c); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(deadline(t), untyped(t, m), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.merge(name, "metadata: {labels: {patched: 'yes'}}"); err != nil {
		t.Fatal(err)
	}
	if u, err = s.Get(deadline(t), name, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	got := core(t, typed[v1alpha1.Machine](t, u))
	if !bytes.Equal(got.Spec.Config, want.Config) || got.Spec.Digest() != want.Digest() || got.Generation != 1 {
		t.Errorf("written again it is %s in generation %d, want %s in 1", got.Spec.Config, got.Generation, want.Config)
	}
}

// fromFile is the config of a machine that is read from YAML.
func fromFile(t *testing.T, config string) []byte {
	t.Helper()
	var m v1alpha1.Machine
	if err := yaml.UnmarshalStrict([]byte(`{"spec": {"providerConfig": `+config+`}}`), &m); err != nil {
		t.Fatal(err)
	}
	return core(t, &m).Spec.Config
}
