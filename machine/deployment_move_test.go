// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// inPlace is a deployment of three old machines that may be moved, with room for them in the new set.
func inPlace(method provider.Method, missing, room int) machine.DeploymentView {
	d := pool(3)
	d.Spec.Strategy = machine.Strategy{Type: machine.InPlace, MaxUnavailable: machine.Amount{Value: missing}, MaxSurge: machine.Amount{Value: 1}}
	old, machines := setOf(d, "v1.36.0", 3, held)
	next, _ := setOf(d, "v1.36.1", 0, func(s *machine.Set) { s.Annotations[machine.NoCreateAnnotation] = "receiving" })
	next.Spec.Replicas = room
	v := deploymentView(d, []machine.Set{old, next}, machines)
	v.Plans = map[machine.Key]provider.Plan{}
	for i := range v.Machines {
		m := &v.Machines[i]
		m.Token, m.Digest = "t-"+m.Name, m.Spec.Digest()
		v.Plans[m.Key] = provider.Plan{Method: method, Reason: "as planned"}
	}
	return v
}

func moved(d machine.DeploymentDecision) (all []string) {
	for _, m := range d.Moves {
		all = append(all, m.Machine.Name)
	}
	return all
}

func policy(p machine.UpdatePolicy) func(*machine.DeploymentView) {
	return func(v *machine.DeploymentView) {
		v.Deployment.Spec.Template.Spec.UpdatePolicy, v.Sets[1].Spec.Template.Spec.UpdatePolicy = p, p
	}
}

// A moveCase is one of the situations of TestMovesInPlace.
type moveCase struct {
	name          string
	method        provider.Method
	missing, room int
	change        func(v *machine.DeploymentView)
	moves, sets   string
	plan          int
	wait          string
}

func moveCases() []moveCase {
	return []moveCase{
		{name: "no room yet", method: provider.InPlace, missing: 2, room: 0, sets: "1=2held"},
		{name: "two at once", method: provider.InPlace, missing: 2, room: 2, moves: "m0-0 m0-1"},
		{name: "none may be missing: one more first", method: provider.InPlace, room: 0, sets: "1=1"},
		{name: "free", method: provider.Nothing, room: 3, moves: "m0-0 m0-1 m0-2"},
		{name: "planned to be replaced", method: provider.Replace, missing: 1, sets: "0=2held 1=1"},
		{name: "not planned yet", missing: 1, change: func(v *machine.DeploymentView) { v.Plans = nil }, plan: 3, sets: "1=1"},
		{name: "refused", method: provider.Unsupported, missing: 1, sets: "1=1", wait: "as planned"},
		{name: "in place only", method: provider.Replace, missing: 1, change: policy(machine.InPlaceOnly), sets: "1=1", wait: "as planned"},
		{name: "replace only", method: provider.InPlace, missing: 1, change: policy(machine.ReplaceOnly), sets: "0=2held 1=1"},
		{name: "one does not work", method: provider.InPlace, missing: 1, room: 3, change: func(v *machine.DeploymentView) {
			v.Nodes[key("m0-2")] = conditions("Ready", "False", noon)
		}, moves: "m0-2", wait: "2 machines work of 3"},
		{name: "one is disturbed", method: provider.InPlace, missing: 2, room: 3, change: func(v *machine.DeploymentView) {
			v.Machines[0].Update = &machine.Update{Slot: true}
		}, moves: "m0-1"},
		{name: "one is paused", method: provider.InPlace, missing: 2, room: 3, change: func(v *machine.DeploymentView) {
			v.Machines[0].Spec.Paused, v.Machines[0].Digest = true, v.Machines[0].Spec.Digest()
		}, moves: "m0-1 m0-2", wait: "paused"},
		{name: "one was moved and has not followed", method: provider.InPlace, missing: 1, room: 3, change: func(v *machine.DeploymentView) {
			v.Machines[0].Digest = "older"
			v.Machines[0].Owner = machine.Owner{UID: v.Sets[1].UID, Name: v.Sets[1].Name}
		}, sets: "1=2", wait: "2 machines work of 3"},
		{name: "nothing is known", method: provider.InPlace, missing: 2, room: 3, change: func(v *machine.DeploymentView) { v.Nodes = nil }, sets: "1=1", wait: "0 machines work"},
		{name: "old ones are not held", method: provider.InPlace, missing: 2, room: 3, change: func(v *machine.DeploymentView) {
			delete(v.Sets[0].Annotations, machine.NoCreateAnnotation)
		}, sets: "0=3held", wait: ""},
		{name: "skew", method: provider.InPlace, missing: 2, room: 3, change: func(v *machine.DeploymentView) { v.Skew = "too new" }, sets: "1=0", wait: "too new"},
		{name: "paused", method: provider.InPlace, missing: 2, room: 3, change: func(v *machine.DeploymentView) { v.Deployment.Spec.Paused = true }, wait: "paused"},
		{name: "fewer are wanted", method: provider.InPlace, missing: 1, room: 0, change: func(v *machine.DeploymentView) { v.Deployment.Spec.Replicas = 1 },
			sets: "0=2held 1=2held"},
	}
}

// TestMovesInPlace: what is done with machines that can be updated in place, and with the others. R-MA-09, R-MA-28.
func TestMovesInPlace(t *testing.T) {
	for _, c := range slices.Concat(moveCases()) {
		t.Run(c.name, func(t *testing.T) {
			v := inPlace(c.method, c.missing, c.room)
			if c.change != nil {
				c.change(&v)
			}
			d := machine.DecideDeployment(v)
			if got := strings.Join(moved(d), " "); got != c.moves || updates(d) != c.sets || len(d.Plan) != c.plan {
				t.Errorf("moves %q, sets %q, plans of %d; want %q, %q, %d", got, updates(d), len(d.Plan), c.moves, c.sets, c.plan)
			}
			if !strings.Contains(d.Status.Message, c.wait) {
				t.Errorf("message %q, want %q", d.Status.Message, c.wait)
			}
		})
	}
}

// TestMoveIsOneWrite: owner, labels, annotations and spec change together, and what belongs to the machine stays. R-MA-09.
func TestMoveIsOneWrite(t *testing.T) {
	v := inPlace(provider.InPlace, 1, 1)
	v.Sets[0].Spec.Template.Labels["old"], v.Sets[0].Spec.Template.Annotations = "1", map[string]string{"note": "old", "edited": "old"}
	v.Sets[1].Spec.Template.Annotations = map[string]string{"new": "1"}
	v.Deployment.Spec.Template.Annotations = map[string]string{"new": "1"}
	m := &v.Machines[0]
	m.Labels = maps.Clone(v.Sets[0].Spec.Template.Labels)
	m.Labels["own"] = "1"
	m.Annotations = map[string]string{"note": "old", "edited": "by somebody", "own": "1"}
	m.Spec.ProviderID, m.Spec.Adopt, m.Digest, m.Finalizer = "x:///t", "token", m.Spec.Digest(), true
	before := *m
	d := machine.DecideDeployment(v)
	if len(d.Moves) != 1 || d.Moves[0].From != before.Owner {
		t.Fatalf("moves: %+v", d.Moves)
	}
	got := d.Moves[0].Machine
	if got.Owner != (machine.Owner{UID: v.Sets[1].UID, Name: v.Sets[1].Name}) || got.UID != before.UID || got.Version != before.Version || !got.Finalizer {
		t.Errorf("machine: %+v", got)
	}
	labels := maps.Clone(v.Sets[1].Spec.Template.Labels)
	labels["own"] = "1"
	if !maps.Equal(got.Labels, labels) {
		t.Errorf("labels %v, want %v", got.Labels, labels)
	}
	if want := map[string]string{"edited": "by somebody", "own": "1", "new": "1"}; !maps.Equal(got.Annotations, want) {
		t.Errorf("annotations %v, want %v", got.Annotations, want)
	}
	want := v.Sets[1].Spec.Template.Spec
	want.ProviderID, want.Adopt = "x:///t", "token"
	if !reflect.DeepEqual(got.Spec, want) || !reflect.DeepEqual(got.Status, before.Status) {
		t.Errorf("spec %+v, want %+v", got.Spec, want)
	}
	if !reflect.DeepEqual(v.Machines[0], before) {
		t.Error("the machine that was looked at has changed")
	}
}

// TestMovesComeToAnEnd: the last machines have moved, and the sets are what they are otherwise.
func TestMovesComeToAnEnd(t *testing.T) {
	d := pool(2)
	d.Spec.Strategy.Type = machine.InPlace
	old, _ := setOf(d, "v1.36.0", 0, held)
	next, machines := setOf(d, "v1.36.1", 3, held)
	v := deploymentView(d, []machine.Set{old, next}, machines)
	got := machine.DecideDeployment(v)
	if updates(got) != "1=2held" {
		t.Fatalf("with the surge: %s", updates(got))
	}
	v = deploymentView(d, []machine.Set{old, got.Update[0].Set}, machines[:2])
	got = machine.DecideDeployment(v)
	if updates(got) != "1=2" {
		t.Fatalf("without: %s", updates(got))
	}
	v.Sets[1] = got.Update[0].Set
	v.Deployment.Status = got.Status
	if got = machine.DecideDeployment(v); len(got.Update) != 0 || got.Store || got.Status.Message != "" || got.Status.Updated != 2 {
		t.Errorf("at the end: %+v", got)
	}
	if !slices.Equal(moved(got), nil) {
		t.Errorf("moves: %v", moved(got))
	}
}
