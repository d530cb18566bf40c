// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// TestHashNeverChanges: these are stored in clusters. If one of them changes, hashVersion has to.
func TestHashNeverChanges(t *testing.T) {
	full := template("v1.36.3")
	full.Annotations = map[string]string{"note": "x"}
	s := &full.Spec
	s.Config, s.Bootstrap, s.Credentials, s.ConfigSource = []byte(`{"size":"m"}`), "boot", "cred", []byte("source")
	s.UpdatePolicy = machine.InPlaceOnly
	s.Deletion = machine.Deletion{DrainTimeout: time.Minute, NodeTimeout: time.Hour, Disks: provider.Destroy, RetainFor: time.Hour,
		Hooks: []machine.Hook{{Name: "n", Owner: "o", Phase: machine.BeforeDrain, Timeout: time.Second}}}
	for want, tpl := range map[string]machine.Template{
		"1-f361ab0bd45c81bf": {}, "1-9f7b5788aaaff300": template("v1.36.0"), "1-f579228a2af9bfce": full,
	} {
		if got := tpl.Hash(); got != want {
			t.Errorf("hash %q, want %q", got, want)
		}
	}
}

// TestHashIsOfTheTemplate: what says the same has the same hash, and everything else another one.
func TestHashIsOfTheTemplate(t *testing.T) {
	base := template("v1.36.0").Hash()
	for name, change := range map[string]func(*machine.Template){
		"label of the hash":     func(x *machine.Template) { x.Labels[machine.HashLabel] = "x" },
		"label of deployment":   func(x *machine.Template) { x.Labels[machine.DeploymentLabel] = "x" },
		"empty annotations":     func(x *machine.Template) { x.Annotations = map[string]string{} },
		"empty config":          func(x *machine.Template) { x.Spec.Config = []byte{} },
		"default policy":        func(x *machine.Template) { x.Spec.UpdatePolicy = machine.ProviderDecides },
		"default disks":         func(x *machine.Template) { x.Spec.Deletion.Disks = provider.Retain },
		"default node timeout":  func(x *machine.Template) { x.Spec.Deletion.NodeTimeout = machine.DefaultNodeTimeout },
		"no hooks":              func(x *machine.Template) { x.Spec.Deletion.Hooks = []machine.Hook{} },
		"of one machine":        func(x *machine.Template) { x.Spec.ProviderID, x.Spec.Adopt = "x", "y" },
		"of one machine, verbs": func(x *machine.Template) { x.Spec.Decommission, x.Spec.Paused = true, true },
	} {
		same := template("v1.36.0")
		if change(&same); same.Hash() != base {
			t.Errorf("%s: hash %q, want %q", name, same.Hash(), base)
		}
	}
	seen := map[string]string{base: "the base"}
	for name, change := range map[string]func(*machine.Template){
		"label":         func(x *machine.Template) { x.Labels["b"] = "" },
		"annotation":    func(x *machine.Template) { x.Annotations = map[string]string{"b": ""} },
		"config":        func(x *machine.Template) { x.Spec.Config = []byte("{}") },
		"kubelet":       func(x *machine.Template) { x.Spec.Versions.Kubelet = "v1.36.1" },
		"runtime":       func(x *machine.Template) { x.Spec.Versions.Runtime.Version = "2" },
		"other":         func(x *machine.Template) { x.Spec.Versions.Other = map[string]string{"kernel": "6"} },
		"role":          func(x *machine.Template) { x.Spec.Roles = []string{"etcd"} },
		"node label":    func(x *machine.Template) { x.Spec.Desired.Node.Labels = map[string]string{"b": ""} },
		"taint":         func(x *machine.Template) { x.Spec.Desired.Node.Taints = []provider.Taint{{Key: "k"}} },
		"bootstrap":     func(x *machine.Template) { x.Spec.Bootstrap = "x" },
		"credentials":   func(x *machine.Template) { x.Spec.Credentials = "x" },
		"config source": func(x *machine.Template) { x.Spec.ConfigSource = []byte("x") },
		"policy":        func(x *machine.Template) { x.Spec.UpdatePolicy = machine.ReplaceOnly },
		"drain timeout": func(x *machine.Template) { x.Spec.Deletion.DrainTimeout = 1 },
		"node timeout":  func(x *machine.Template) { x.Spec.Deletion.NodeTimeout = 1 },
		"disks":         func(x *machine.Template) { x.Spec.Deletion.Disks = provider.Destroy },
		"retain for":    func(x *machine.Template) { x.Spec.Deletion.RetainFor = 1 },
		"hook":          func(x *machine.Template) { x.Spec.Deletion.Hooks = []machine.Hook{{Name: "x"}} },
		"hook owner":    func(x *machine.Template) { x.Spec.Deletion.Hooks = []machine.Hook{{Owner: "x"}} },
		"hook phase":    func(x *machine.Template) { x.Spec.Deletion.Hooks = []machine.Hook{{Phase: "x"}} },
		"hook timeout":  func(x *machine.Template) { x.Spec.Deletion.Hooks = []machine.Hook{{Timeout: 1}} },
	} {
		other := template("v1.36.0")
		change(&other)
		if twin, ok := seen[other.Hash()]; ok {
			t.Errorf("%s and %s have the hash %q", name, twin, other.Hash())
		}
		seen[other.Hash()] = name
	}
}

// TestReplicasAreNoRollout: neither the size, nor the strategy, nor how a library before has named the set, make another set. R-MA-11.
func TestReplicasAreNoRollout(t *testing.T) {
	d := pool(3)
	s, machines := setOf(d, "v1.36.1", 3)
	s.Name, s.Labels, s.Spec.Template.Labels = "pool-by-another-rule", nil, map[string]string{"pool": "a", machine.HashLabel: "0-abc"}
	s.Spec.Selector = map[string]string{"pool": "a", machine.HashLabel: "0-abc"}
	for i := range machines {
		machines[i].Owner.Name, machines[i].Labels = s.Name, s.Spec.Template.Labels
	}
	for name, change := range map[string]func(*machine.DeploymentSpec){
		"nothing":  func(*machine.DeploymentSpec) {},
		"size":     func(x *machine.DeploymentSpec) { x.Replicas = 7 },
		"strategy": func(x *machine.DeploymentSpec) { x.Strategy.MaxSurge.Value = 2 },
		"order": func(x *machine.DeploymentSpec) {
			x.Order, x.MaxProvisioning, x.MinReady = machine.OldestFirst, 5, time.Second
		},
	} {
		d := d
		change(&d.Spec)
		got := machine.DecideDeployment(deploymentView(d, []machine.Set{s}, machines))
		if got.Create != nil || got.Status.Updated != 3 || got.Status.Revision != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
