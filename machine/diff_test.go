// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// rich is a machine of which every field that is portable is set.
func rich() machine.Machine {
	m := member(poolSet(1), "a", annotated("note", "x"))
	s := &m.Spec
	s.Versions = provider.Versions{Kubelet: "v1.36.3", Runtime: provider.Runtime{Name: "containerd", Version: "2.1"}, Other: map[string]string{"kernel": "6"}}
	s.Roles = []string{"worker", "ingress"}
	s.Desired.Node = provider.NodeSettings{
		Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"n": "1"},
		Taints: []provider.Taint{{Key: "k", Value: "v", Effect: "NoSchedule"}, {Key: "l", Effect: "NoExecute"}},
	}
	s.Config, s.Bootstrap, s.Credentials, s.ConfigSource = []byte(`{"cloud":"a"}`), "boot", "cred", []byte("source")
	s.Deletion.Hooks = []machine.Hook{{Name: "n", Owner: "o", Phase: machine.BeforeStop, Timeout: time.Minute}}
	return m
}

// TestCopiesShowNoDifference: a machine and its copy in another cluster differ in nothing that is portable. R-MA-14.
func TestCopiesShowNoDifference(t *testing.T) {
	a, b := rich(), rich()
	b.Key, b.UID, b.Version, b.Generation, b.Created = machine.Key{Namespace: "x", Name: "y"}, "u", "v", 9, noon.Add(time.Hour)
	b.Owner, b.Finalizer, b.Status = machine.Owner{UID: "o"}, true, machine.Status{Phase: machine.PhaseFailed, Token: "t"}
	b.Spec.Config, b.Spec.ProviderID, b.Spec.Adopt = []byte(`{"cloud":"b"}`), "b:///t", "t"
	b.Labels[machine.HashLabel], b.Labels[machine.DeploymentLabel] = "1-abc", "pool"
	for _, verb := range []string{machine.ApproveAnnotation, machine.RetryAnnotation, machine.OverrideAnnotation, machine.DeleteAnnotation, machine.LineageAnnotation,
		"kubectl.kubernetes.io/last-applied-configuration"} {
		b.Annotations[verb] = "x"
	}
	b.Spec.Roles = []string{"ingress", "worker"}
	b.Spec.Desired.Node.Taints[0], b.Spec.Desired.Node.Taints[1] = b.Spec.Desired.Node.Taints[1], b.Spec.Desired.Node.Taints[0]
	b.Spec.UpdatePolicy, b.Spec.Deletion.Disks, b.Spec.Deletion.NodeTimeout = machine.ProviderDecides, provider.Retain, machine.DefaultNodeTimeout
	if d := machine.Diff(a, b); len(d) != 0 {
		t.Errorf("differences: %v", d)
	}
}

// TestDiff: each portable field shows, under its path, both ways round. R-MA-14.
func TestDiff(t *testing.T) {
	for want, change := range map[string]func(*machine.Machine){
		`metadata.labels[pool]: "a" -> "b"`:                           func(m *machine.Machine) { m.Labels["pool"] = "b" },
		`metadata.labels[new]: "" -> "b"`:                             func(m *machine.Machine) { m.Labels["new"] = "b" },
		`metadata.annotations[note]: "x" -> ""`:                       func(m *machine.Machine) { m.Annotations = nil },
		`spec.versions.kubelet: "v1.36.3" -> "v1.37.0"`:               func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.37.0" },
		`spec.versions.runtime.name: "containerd" -> "crio"`:          func(m *machine.Machine) { m.Spec.Versions.Runtime.Name = "crio" },
		`spec.versions.runtime.version: "2.1" -> "2.2"`:               func(m *machine.Machine) { m.Spec.Versions.Runtime.Version = "2.2" },
		`spec.versions.other[kernel]: "6" -> "7"`:                     func(m *machine.Machine) { m.Spec.Versions.Other["kernel"] = "7" },
		`spec.roles: "ingress,worker" -> "worker"`:                    func(m *machine.Machine) { m.Spec.Roles = []string{"worker"} },
		`spec.node.labels[zone]: "a" -> "b"`:                          func(m *machine.Machine) { m.Spec.Desired.Node.Labels["zone"] = "b" },
		`spec.node.annotations[n]: "1" -> "2"`:                        func(m *machine.Machine) { m.Spec.Desired.Node.Annotations["n"] = "2" },
		`spec.node.taints: "k=v:NoSchedule,l=:NoExecute" -> ""`:       func(m *machine.Machine) { m.Spec.Desired.Node.Taints = nil },
		`spec.bootstrap: "boot" -> "b"`:                               func(m *machine.Machine) { m.Spec.Bootstrap = "b" },
		`spec.credentials: "cred" -> "b"`:                             func(m *machine.Machine) { m.Spec.Credentials = "b" },
		`spec.configSource: "6 bytes, sha256:41cf6794ba4200b8" -> ""`: func(m *machine.Machine) { m.Spec.ConfigSource = nil },
		`spec.updatePolicy: "ProviderDecides" -> "Manual"`:            func(m *machine.Machine) { m.Spec.UpdatePolicy = machine.ManualUpdate },
		`spec.decommission: "false" -> "true"`:                        func(m *machine.Machine) { m.Spec.Decommission = true },
		`spec.paused: "false" -> "true"`:                              func(m *machine.Machine) { m.Spec.Paused = true },
		`spec.deletion.drainTimeout: "0s" -> "1m0s"`:                  func(m *machine.Machine) { m.Spec.Deletion.DrainTimeout = time.Minute },
		`spec.deletion.nodeTimeout: "10m0s" -> "1m0s"`:                func(m *machine.Machine) { m.Spec.Deletion.NodeTimeout = time.Minute },
		`spec.deletion.disks: "Retain" -> "Destroy"`:                  func(m *machine.Machine) { m.Spec.Deletion.Disks = provider.Destroy },
		`spec.deletion.retainFor: "0s" -> "1h0m0s"`:                   func(m *machine.Machine) { m.Spec.Deletion.RetainFor = time.Hour },
		`spec.deletion.hooks: "BeforeStop/n of o within 1m0s" -> ""`:  func(m *machine.Machine) { m.Spec.Deletion.Hooks = nil },
	} {
		b := rich()
		change(&b)
		if d := machine.Diff(rich(), b); len(d) != 1 || d[0].String() != want {
			t.Errorf("%v, want %s", d, want)
		}
		if d := machine.Diff(b, rich()); len(d) != 1 || d[0].A != machine.Diff(rich(), b)[0].B {
			t.Errorf("the other way round: %v", d)
		}
	}
	var all machine.Machine
	got := machine.Diff(rich(), all)
	for i := range got[1:] {
		if got[i].Path > got[i+1].Path {
			t.Errorf("%s stands before %s", got[i].Path, got[i+1].Path)
		}
	}
	if text := fmt.Sprint(got); strings.Contains(text, "source\"") || strings.Contains(text, "cloud") {
		t.Errorf("data is shown: %s", text)
	}
}

// TestDiffKnowsEveryField: a field that is added to the spec is compared, or is named here as one that is not portable.
func TestDiffKnowsEveryField(t *testing.T) {
	known := map[string]int{"machine.Spec": 10, "machine.Deletion": 5, "machine.Hook": 4, "provider.Desired": 4, "provider.Versions": 3, "provider.NodeSettings": 3}
	for _, v := range []any{machine.Spec{}, machine.Deletion{}, machine.Hook{}, provider.Desired{}, provider.Versions{}, provider.NodeSettings{}} {
		if typ := reflect.TypeOf(v); typ.NumField() != known[typ.String()] {
			t.Errorf("%s has %d fields, not %d: Diff, Template.Hash and copies of a Spec have to know them", typ, typ.NumField(), known[typ.String()])
		}
	}
}

// FuzzDiff: a machine differs from itself in nothing, and from another in the same fields both ways round. R-MA-14.
func FuzzDiff(f *testing.F) {
	f.Add("v1.36.3", "worker", "a", "b", []byte("x"), int64(5))
	f.Add("", "", "machine.belay.dev/x", "", []byte(nil), int64(-1))
	f.Fuzz(func(t *testing.T, kubelet, role, k, v string, data []byte, n int64) {
		a := rich()
		b := a
		b.Spec.Versions.Kubelet, b.Spec.Roles, b.Spec.ConfigSource = kubelet, []string{role}, data
		b.Labels, b.Annotations = map[string]string{k: v}, map[string]string{v: k}
		b.Spec.Deletion.DrainTimeout = time.Duration(n)
		if d := machine.Diff(b, b); len(d) != 0 {
			t.Errorf("of itself: %v", d)
		}
		there, back := machine.Diff(a, b), machine.Diff(b, a)
		if len(there) != len(back) {
			t.Fatalf("%v\n%v", there, back)
		}
		for i := range there {
			if there[i].Path != back[i].Path || there[i].A != back[i].B || there[i].B != back[i].A {
				t.Errorf("%v, %v", there[i], back[i])
			}
		}
	})
}
