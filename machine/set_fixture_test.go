// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"time"

	"github.com/belayproject/belay/machine"
)

// noon is when the tests of sets, deployments and health checks look.
var noon = time.Date(2030, 6, 1, 12, 0, 0, 0, time.UTC)

func key(name string) machine.Key { return machine.Key{Namespace: "ns", Name: name} }

// poolSet is a set without machines.
func poolSet(replicas int) machine.Set {
	return machine.Set{
		Key: key("pool"), UID: "set-uid", Version: "7", Generation: 3, Created: noon.Add(-time.Hour),
		Spec: machine.SetSpec{Replicas: replicas, Selector: map[string]string{"pool": "a"}, Template: template("v1.36.0")},
	}
}

// member is a machine of a set that works since a while.
func member(s machine.Set, name string, change ...func(*machine.Machine)) machine.Machine {
	m := s.Machine(machine.Reservation{Name: name})
	m.UID, m.Version, m.Created = "uid-"+name, "v-"+name, noon.Add(-time.Hour)
	m.Node, m.Phase = &machine.NodeRef{Name: name, UID: "node-" + name}, machine.PhaseRunning
	m.Step = machine.Step{Name: machine.StepReady, Since: noon.Add(-50 * time.Minute)}
	for _, c := range change {
		c(&m)
	}
	return m
}

func deleted(m *machine.Machine) { m.Deleted = noon }

func notJoined(m *machine.Machine) {
	m.Node, m.Phase, m.Step = nil, machine.PhaseJoining, machine.Step{Name: machine.StepJoining, Since: noon.Add(-time.Minute)}
}

func annotated(k, v string) func(*machine.Machine) {
	return func(m *machine.Machine) { m.Annotations = map[string]string{k: v} }
}

func roles(r ...string) func(*machine.Machine) {
	return func(m *machine.Machine) { m.Spec.Roles = r }
}

func decommissioned(m *machine.Machine) { m.Spec.Decommission = true }

// allReady are Nodes of all machines, ready since a while.
func allReady(machines []machine.Machine) map[machine.Key]machine.NodeHealth {
	nodes := map[machine.Key]machine.NodeHealth{}
	for _, m := range machines {
		if m.Node != nil {
			nodes[m.Key] = conditions("Ready", "True", noon.Add(-40*time.Minute))
		}
	}
	return nodes
}

func conditions(kind, status string, since time.Time) machine.NodeHealth {
	return machine.NodeHealth{Conditions: []machine.Condition{{Type: kind, Status: status, Since: since}}}
}

func setView(s machine.Set, machines ...machine.Machine) machine.SetView {
	return machine.SetView{Set: s, Now: noon, Machines: machines, Live: true, Nodes: allReady(machines)}
}

func names(list []machine.Choice) []string {
	var all []string
	for _, c := range list {
		all = append(all, c.Name)
	}
	return all
}

func reserved(n int) (all []machine.Reservation) {
	for i := range n {
		all = append(all, machine.Reservation{Name: fmt.Sprint("reserved-", i)})
	}
	return all
}
