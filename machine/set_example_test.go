// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"time"

	"github.com/belayproject/belay/machine"
)

// A set of three is asked what it needs, at first by what a cache says.
func ExampleDecideSet() {
	set := machine.Set{Key: machine.Key{Namespace: "prod", Name: "workers"}, UID: "0001"}
	set.Spec.Replicas, set.Spec.Selector = 3, map[string]string{"pool": "workers"}
	set.Spec.Template.Labels = set.Spec.Selector

	d := machine.DecideSet(machine.SetView{Set: set, Now: time.Unix(0, 0)})
	fmt.Println("live list needed:", d.NeedLive, "created:", len(d.Create))

	d = machine.DecideSet(machine.SetView{Set: set, Now: time.Unix(0, 0), Live: true})
	fmt.Println("stored first:", d.Store, "reserved:", len(d.Status.Reserved), "then created:", len(d.Create))
	// Output:
	// live list needed: true created: 0
	// stored first: true reserved: 3 then created: 3
}

// The second of two members is to end.
func ExampleCheckEnd() {
	a, b := machine.Key{Namespace: "prod", Name: "a"}, machine.Key{Namespace: "prod", Name: "b"}
	spec := machine.Spec{Decommission: true}
	spec.Roles = []string{machine.RoleEtcd}
	staying := spec
	staying.Decommission = false

	for _, f := range machine.CheckEnd(machine.GateView{
		Ending:       []machine.Key{b},
		Machines:     []machine.Machine{{Key: a, Spec: staying, Status: machine.Status{Phase: machine.PhaseRunning}}, {Key: b, Spec: spec}},
		Members:      []machine.Member{{Name: "a", Machine: a, Healthy: true}, {Name: "b", Machine: b}},
		MembersKnown: true,
	}) {
		fmt.Println(f.Severity, f)
	}
	// Output:
	// Block Quorum: the members can't decide, not even on who leaves: 1 of 2 are healthy, 2 have to be
}

// A copy in another cluster has another provider and another name, and one newer version.
func ExampleDiff() {
	here := machine.Machine{Key: machine.Key{Name: "a"}}
	here.Spec.Versions.Kubelet, here.Spec.Config = "v1.36.3", []byte(`{"region":"north"}`)
	there := here
	there.Name = "b"
	there.Spec.Versions.Kubelet, there.Spec.Config = "v1.37.0", []byte(`{"rack":7}`)
	for _, d := range machine.Diff(here, there) {
		fmt.Println(d)
	}
	fmt.Println(machine.Skew("v1.36.3", there.Spec.Versions.Kubelet))
	// Output:
	// spec.versions.kubelet: "v1.36.3" -> "v1.37.0"
	// kubelet v1.37.0 is newer than the control plane, which has v1.36.3: bring that to v1.37 first
}
