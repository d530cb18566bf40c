// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"time"

	"github.com/belayproject/belay/machine"
)

// A new deployment gets its set, which makes nothing yet.
func ExampleDecideDeployment() {
	d := machine.Deployment{Key: machine.Key{Namespace: "prod", Name: "workers"}, UID: "0001"}
	d.Spec.Replicas, d.Spec.Selector = 3, map[string]string{"pool": "workers"}
	d.Spec.Template.Labels = d.Spec.Selector
	d.Spec.Template.Spec.Versions.Kubelet = "v1.36.3"

	got := machine.DecideDeployment(machine.DeploymentView{Deployment: d, Now: time.Unix(0, 0), Live: true})
	set := *got.Create
	fmt.Println(set.Name, set.Spec.Replicas, set.Annotations[machine.RevisionAnnotation])

	set.UID = "0002"
	got = machine.DecideDeployment(machine.DeploymentView{Deployment: d, Now: time.Unix(0, 0), Live: true, Sets: []machine.Set{set}})
	for _, u := range got.Update {
		fmt.Println(u.Set.Name, u.Set.Spec.Replicas, u.Reason)
	}
	// Output:
	// workers-drqd6tcq 0 1
	// workers-drqd6tcq 3 3 of 3 machines are to be of its template
}

// A Node that has been silent for twenty minutes: a reboot first, as its provider can.
func ExampleDecideHealth() {
	now := time.Unix(0, 0)
	m := machine.Machine{Key: machine.Key{Namespace: "prod", Name: "a"}, UID: "0001", Labels: map[string]string{"pool": "workers"}}
	m.Node = &machine.NodeRef{Name: "a"}
	v := machine.HealthView{Now: now, Machines: []machine.Machine{m}, NodesKnown: true, CanReboot: true, Budget: 1}
	v.Check.Namespace, v.Check.Spec.Selector = "prod", m.Labels
	v.Nodes = map[machine.Key]machine.NodeHealth{m.Key: {
		Conditions: []machine.Condition{{Type: "Ready", Status: "Unknown", Since: now.Add(-20 * time.Minute)}},
	}}
	d := machine.DecideHealth(v)
	for _, r := range d.Remedies {
		fmt.Println(r.Kind, r.Choice.Key, r.Reason)
	}
	// Output:
	// Reboot prod/a Ready is Unknown for more than 10m0s
}
