// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/kube"
)

// What a change does with a machine.
const (
	changeNone         = "none"
	changeNew          = "new"
	changeEnds         = "ends"
	changeUnreferenced = "unreferenced"
)

// judge says what a change does with each machine.
func judge(before, after *files, as map[machine.Gate]machine.Severity) *report {
	r := &report{rows: map[machine.Key]*row{}}
	for key, m := range before.machines {
		r.row(key, changeNone).roles = m.Spec.Roles
	}
	for key := range after.machines {
		if _, ok := before.machines[key]; !ok {
			r.row(key, changeNew)
		}
	}
	v := machine.GateView{Members: before.members, MembersKnown: before.known, As: as}
	for _, key := range sortedKeys(before.machines) {
		m := before.machines[key]
		m.Spec.Decommission = m.Spec.Decommission || after.machines[key].Spec.Decommission
		if r.leaves(m, before, after) {
			v.Ending = append(v.Ending, key)
		}
		v.Machines = append(v.Machines, m)
	}
	v.Ending = append(v.Ending, r.surplus(before, after)...)
	slices.SortFunc(v.Ending, compare)
	v.Ending = slices.Compact(v.Ending)
	for _, key := range v.Ending {
		r.rows[key].Change = changeEnds
	}
	v.Volumes, v.Workloads = before.cargo(v.Ending)
	r.find(v.Ending, machine.CheckEnd(v))
	r.unreferenced(before, after)
	return r
}

// leaves reports whether a machine ends by what is said of it alone.
func (r *report) leaves(m machine.Machine, before, after *files) bool {
	_, there := after.machines[m.Key]
	switch {
	case m.Token == "", !m.Deleted.IsZero(), m.Phase == machine.PhaseRetired, m.Release != nil && m.Release.Begun:
		return false // there is no instance, or its end goes on whatever is said here
	case there:
		return m.Spec.Decommission && !before.machines[m.Key].Spec.Decommission
	}
	return m.Spec.Decommission && m.Owner == machine.Owner{}
}

// surplus are the machines that smaller sets and deployments would choose. Those of a deployment are judged as one set.
func (r *report) surplus(before, after *files) (ending []machine.Key) {
	choose := func(sets []string, replicas int, order machine.DeleteOrder) {
		var machines []machine.Machine
		for _, key := range sortedKeys(before.machines) {
			if m := before.machines[key]; slices.Contains(sets, m.Owner.UID) {
				machines = append(machines, m)
			}
		}
		for _, c := range machine.ScaleIn(machines, replicas, order) {
			ending = append(ending, c.Key)
		}
	}
	for _, key := range sortedKeys(before.sets) {
		was := before.sets[key]
		if will, ok := after.sets[key]; ok && was.UID != "" && will.Spec.Replicas < was.Spec.Replicas {
			choose([]string{was.UID}, will.Spec.Replicas, will.Spec.Order)
		}
	}
	for _, key := range sortedKeys(before.deployments) {
		was := before.deployments[key]
		will, ok := after.deployments[key]
		if !ok || was.UID == "" || will.Spec.Replicas >= was.Spec.Replicas {
			continue
		}
		var sets []string
		for _, s := range before.sets {
			if s.Owner.UID == was.UID {
				sets = append(sets, s.UID)
			}
		}
		choose(sets, will.Spec.Replicas, will.Spec.Order)
	}
	return ending
}

// cargo is what is on the machines that end.
func (f *files) cargo(ending []machine.Key) ([]machine.LocalVolume, []machine.Workload) {
	hosts := map[machine.Key]*corev1.Node{}
	for _, key := range ending {
		if ref := f.machines[key].Node; ref != nil && f.nodes[ref.Name] != nil && string(f.nodes[ref.Name].UID) == ref.UID {
			hosts[key] = f.nodes[ref.Name]
		}
	}
	return kube.LocalVolumes(hosts, f.volumes, f.pods), kube.Workloads(hosts, f.pods)
}

// find gives each finding to the machine that it is about, and one about all to those that it may come from.
func (r *report) find(ending []machine.Key, found []machine.Finding) {
	for _, f := range found {
		if f.Machine != (machine.Key{}) {
			r.rows[f.Machine].add(f)
			continue
		}
		for _, key := range ending {
			if f.Gate == machine.GateReplica || machine.Protected(r.rows[key].roles) {
				r.rows[key].add(f)
			}
		}
	}
}

// unreferenced reports what is not in the change and was not entered for its end.
func (r *report) unreferenced(before, after *files) {
	for _, c := range machine.Unreferenced(slices.Collect(maps.Values(before.machines)), slices.Collect(maps.Values(after.machines))) {
		if row := r.rows[c.Key]; row.Change == changeNone {
			row.Change = changeUnreferenced
			row.add(machine.Finding{Gate: "Unreferenced", Severity: machine.Warn, Machine: c.Key, Message: c.Reason})
		}
	}
}

func sortedKeys[V any](m map[machine.Key]V) []machine.Key {
	return slices.SortedFunc(maps.Keys(m), compare)
}

func compare(a, b machine.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
