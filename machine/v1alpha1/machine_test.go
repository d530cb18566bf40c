// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/v1alpha1"
)

func now() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }

// machineOf is the object of a machine.
func machineOf(t *testing.T, c machine.Machine) *v1alpha1.Machine {
	t.Helper()
	m := &v1alpha1.Machine{}
	if err := m.SetCore(c); err != nil {
		t.Fatal(err)
	}
	m.SetStatus(c, nil, now())
	return m
}

// core is what package machine sees of an object.
func core(t *testing.T, m *v1alpha1.Machine) machine.Machine {
	t.Helper()
	c, err := m.Core()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// R-MA-17, R-MA-08: nothing that package machine knows of a machine gets lost in the API, the provider's part byte for byte.
func TestMachineKeepsEverything(t *testing.T) {
	each(t, func(want machine.Machine) {
		m := stored(t, *machineOf(t, want))
		same(t, want, core(t, &m), nil)
		inUTC(t, want, core(t, &m))
	})
}

// The other way round: what stands in an object is what package machine sees, and no field is forgotten.
func TestMachineInventsNothing(t *testing.T) {
	var spec v1alpha1.MachineSpec
	f := &filler{t: t}
	f.fill(reflect.ValueOf(&spec).Elem())
	m := &v1alpha1.Machine{Spec: spec}
	if diff := cmp.Diff(spec, stored(t, *machineOf(t, core(t, m))).Spec); diff != "" {
		t.Errorf("a spec came back as another one (-want +got):\n%s", diff)
	}
	var status v1alpha1.MachineStatus
	f.fill(reflect.ValueOf(&status).Elem())
	status.Phase, status.FailureReason, status.FailureMessage = "Failed", status.Failure.Reason, status.Failure.Message
	status.Conditions = nil
	m = &v1alpha1.Machine{Status: status}
	got := machineOf(t, core(t, m)).Status
	got.Conditions = nil
	if diff := cmp.Diff(status, got); diff != "" {
		t.Errorf("a status came back as another one (-want +got):\n%s", diff)
	}
}

// Conditions are for others: whatever stands in them, nobody decides by it.
func TestConditionsAreNoInput(t *testing.T) {
	c := machine.Machine{Key: machine.Key{Namespace: "a", Name: "b"}, Status: machine.Status{Phase: machine.PhaseRunning}}
	m := machineOf(t, c)
	for i := range m.Status.Conditions {
		m.Status.Conditions[i].Status, m.Status.Conditions[i].Reason = metav1.ConditionFalse, "Edited"
	}
	m.Status.FailureReason, m.Status.FailureMessage = "Edited", "edited"
	if diff := cmp.Diff(c, core(t, m)); diff != "" {
		t.Errorf("conditions were read (-want +got):\n%s", diff)
	}
}

// What others have put on a Machine stays: finalizers, owners that do not control it, an owner of another kind.
func TestMachineKeepsWhatIsNotOurs(t *testing.T) {
	yes := true
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "m", Finalizers: []string{"example.com/other"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Rack", Name: "r", UID: "r-1"}, {Kind: "Pool", Name: "p", UID: "p-1", Controller: &yes}},
	}}
	c := core(t, m)
	if want := (machine.Owner{UID: "p-1", Name: "p"}); c.Owner != want || c.Finalizer {
		t.Errorf("got owner %+v and finalizer %t, want %+v and none", c.Owner, c.Finalizer, want)
	}
	c.Finalizer = true
	if err := m.SetCore(c); err != nil {
		t.Fatal(err)
	}
	if got := m.Finalizers; !reflect.DeepEqual(got, []string{"example.com/other", v1alpha1.Finalizer}) || m.OwnerReferences[1].Kind != "Pool" {
		t.Errorf("got finalizers %q and owners %+v, want the other ones still there", got, m.OwnerReferences)
	}
	c.Finalizer, c.Owner = false, machine.Owner{UID: "s-1", Name: "s"}
	if err := m.SetCore(c); err != nil {
		t.Fatal(err)
	}
	if got := m.Finalizers; !reflect.DeepEqual(got, []string{"example.com/other"}) {
		t.Errorf("got finalizers %q, want ours alone removed", got)
	}
	want := metav1.OwnerReference{
		APIVersion: "belay.dev/v1alpha1", Kind: "MachineSet", Name: "s", UID: "s-1", Controller: &yes, BlockOwnerDeletion: &yes,
	}
	if got := m.OwnerReferences; len(got) != 2 || got[0].Kind != "Rack" || !reflect.DeepEqual(got[1], want) {
		t.Errorf("got owners %+v, want the rack and %+v", got, want)
	}
}

// A change of what was made of an object leaves the object alone, and the other way round.
func TestMachineSharesNothing(t *testing.T) {
	var c, again machine.Machine
	(&filler{t: t}).fill(reflect.ValueOf(&c).Elem())
	(&filler{t: t}).fill(reflect.ValueOf(&again).Elem())
	m := machineOf(t, c)
	want := m.DeepCopy()
	scratch(reflect.ValueOf(&c).Elem())
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("the object changed with what it was made of (-want +got):\n%s", diff)
	}
	c = core(t, m)
	scratch(reflect.ValueOf(m).Elem())
	if diff := cmp.Diff(again, c); diff != "" {
		t.Errorf("what was made of the object changed with it (-want +got):\n%s", diff)
	}
}

// scratch changes everything that is reached by a pointer, a slice or a map.
func scratch(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scratch(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			scratch(v.Index(i))
			v.Index(i).SetZero()
		}
	case reflect.Map:
		v.Clear()
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				scratch(f)
				if f.Kind() != reflect.Pointer && f.Kind() != reflect.Map && f.Kind() != reflect.Slice && f.Kind() != reflect.Struct {
					f.SetZero()
				}
			}
		}
	}
}

// What the API server does not check has an error that names the field.
func TestMachineNamesTheField(t *testing.T) {
	for _, c := range []struct {
		name string
		spec v1alpha1.MachineConfig
		want string
	}{
		{"label", v1alpha1.MachineConfig{NodeMetadata: &v1alpha1.NodeMetadata{Labels: map[string]v1alpha1.LabelValue{"a b": ""}}},
			`machine "ns/m": spec.nodeMetadata.labels: key "a b": `},
		{"label prefix", v1alpha1.MachineConfig{NodeMetadata: &v1alpha1.NodeMetadata{Labels: map[string]v1alpha1.LabelValue{"A.B/c": ""}}},
			`machine "ns/m": spec.nodeMetadata.labels: key "A.B/c": `},
		{"annotation", v1alpha1.MachineConfig{NodeMetadata: &v1alpha1.NodeMetadata{Annotations: map[string]string{"a/b/c": ""}}},
			`machine "ns/m": spec.nodeMetadata.annotations: key "a/b/c": `},
	} {
		m := v1alpha1.Machine{Spec: v1alpha1.MachineSpec{MachineConfig: c.spec}}
		m.Namespace, m.Name = "ns", "m"
		if _, err := m.Core(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one with %q", c.name, err, c.want)
		}
	}
	for _, c := range []struct {
		name string
		spec machine.Spec
		want string
	}{
		{"config", machine.Spec{Desired: provider.Desired{Config: []byte(`[1]`)}}, `machine "ns/m": config: want a JSON object`},
		{"no JSON", machine.Spec{Desired: provider.Desired{Config: []byte(`{"a":`)}}, `machine "ns/m": config: want a JSON object`},
		{"source", machine.Spec{ConfigSource: []byte(`{"secretRef":{}}`)}, `machine "ns/m": config source: want a NodeConfigSource in JSON`},
	} {
		m := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "as-it-was"}}
		err := m.SetCore(machine.Machine{Key: machine.Key{Namespace: "ns", Name: "m"}, Spec: c.spec})
		if err == nil || !strings.Contains(err.Error(), c.want) || m.Name != "as-it-was" {
			t.Errorf("%s: got error %v and object %q, want an error with %q and the object as it was", c.name, err, m.Name, c.want)
		}
	}
}

// R-MA-08: a config is a config if it is an object; what is in it is nobody's business here.
func TestProviderConfigIsOpaque(t *testing.T) {
	raw := `{ "b": 1.50, "a": {"x": null, "y": [ {"z": "<é>"} ]}, "b2": 12345678901234567890 }`
	m := v1alpha1.Machine{Spec: v1alpha1.MachineSpec{MachineConfig: v1alpha1.MachineConfig{ProviderConfig: &runtime.RawExtension{Raw: []byte(raw)}}}}
	c := core(t, &m)
	if string(c.Spec.Config) != raw {
		t.Errorf("got config %s, want %s", c.Spec.Config, raw)
	}
	if got := machineOf(t, c).Spec.ProviderConfig.Raw; string(got) != raw {
		t.Errorf("got provider config %s, want %s", got, raw)
	}
}

// A status of any length, and of any bytes, can be stored, and is the same when it is written again.
func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("é", v1alpha1.MaxMessage) + "\xff"
	c := machine.Machine{Status: machine.Status{
		Phase: machine.PhaseFailed, Step: machine.Step{Name: machine.StepCreating, Blocker: long}, Failure: &machine.Failure{Reason: "R", Message: "x" + long},
		Instance: &provider.Instance{Message: "\xff"}, Update: &machine.Update{Plan: provider.Plan{Reason: long}, Overrides: []string{long}},
		Release: &machine.Release{Overrides: []string{long}}, Versions: provider.Versions{Kubelet: long, Other: map[string]string{"kernel": long}},
	}}
	m := machineOf(t, c)
	s := m.Status
	for what, text := range map[string]string{
		"blocker": s.Step.Blocker, "failure": s.Failure.Message, "failureMessage": s.FailureMessage, "plan": s.Update.Plan.Reason, "override": s.Release.Overrides[0],
		"override of an update": s.Update.Overrides[0],
	} {
		if len(text) < v1alpha1.MaxMessage-1 || len(text) > v1alpha1.MaxMessage || strings.ContainsRune(text, '\uFFFD') {
			t.Errorf("%s has %d bytes and ends with %q, want %d and whole characters", what, len(text), text[len(text)-4:], v1alpha1.MaxMessage)
		}
	}
	if s.Instance.Message != "\uFFFD" || len(s.Versions.Kubelet) != v1alpha1.MaxVersion || len(s.Versions.Other["kernel"]) != v1alpha1.MaxVersion {
		t.Errorf("got %q, %q and %q, want them short and valid", s.Instance.Message, s.Versions.Kubelet, s.Versions.Other)
	}
	if again := machineOf(t, core(t, m)); !reflect.DeepEqual(again.Status, s) {
		t.Errorf("the same status came out as another one: %s", cmp.Diff(s, again.Status))
	}
}

// R-MA-11: what the autoscaler takes for a machine that becomes no Node is there if, and only if, the machine has failed.
func TestFailureIsForTheAutoscaler(t *testing.T) {
	failure := &machine.Failure{Reason: string(provider.Stockout), Message: "no capacity in zone a", Since: now()}
	for _, c := range []struct {
		phase           machine.Phase
		failure         *machine.Failure
		reason, message string
	}{
		{machine.PhaseFailed, failure, "Stockout", "no capacity in zone a"},
		{machine.PhaseProvisioning, failure, "", ""},
		{machine.PhaseRunning, failure, "", ""},
		{machine.PhaseFailed, nil, "", ""},
	} {
		s := machineOf(t, machine.Machine{Status: machine.Status{Phase: c.phase, Failure: c.failure}}).Status
		if s.FailureReason != c.reason || s.FailureMessage != c.message || (s.Failure == nil) != (c.failure == nil) {
			t.Errorf("%s, %v: got %q, %q and %v, want %q, %q", c.phase, c.failure, s.FailureReason, s.FailureMessage, s.Failure, c.reason, c.message)
		}
	}
}
