// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// A Machine is read, decided on, and says what it is at.
func ExampleMachine() {
	m := &v1alpha1.Machine{}
	err := yaml.UnmarshalStrict([]byte(`
apiVersion: belay.dev/v1alpha1
kind: Machine
metadata: {namespace: site-a, name: web-1, uid: 5d1f, generation: 1, finalizers: [belay.dev/machine]}
spec:
  versions: {kubelet: v1.36.3, other: {kernel: 6.12.9}}
  roles: [worker]
  taints: [{key: example.com/new, effect: NoSchedule}]
  bootstrap: {secretRef: {name: join-token}}
  providerConfig: {apiVersion: acme.dev/v1, kind: Server, size: m}
  deletion: {drainTimeout: 1h, diskPolicy: Retain, retainFor: 720h}
`), m)
	if err != nil {
		fmt.Println(err)
	}
	c, err := m.Core()
	if err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s: %s, config %s\n", c.Key, c.Spec.Versions.Kubelet, c.Spec.Config)

	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	c.Status = machine.Decide(machine.View{Machine: c, Cluster: "site-a", Now: now}).Status
	m.SetStatus(c, nil, now)
	fmt.Println(m.Status.Phase, m.Status.Step.Name, m.Status.Incarnation, m.Status.Token)
	for _, condition := range m.Status.Conditions[:3] {
		fmt.Println(condition.Type, condition.Status, condition.Reason)
	}
	// Output:
	// site-a/web-1: v1.36.3, config {"apiVersion":"acme.dev/v1","kind":"Server","size":"m"}
	// Provisioning Creating 1 d74a1ffe-6e4cc4517258c18e-1
	// Ready False Provisioning
	// InstanceRunning False NoInstance
	// NodeReady False NoNode
}

// A set selects its machines by labels, or by expressions, which package machine is told as a function.
func ExampleMachineSelector_Matches() {
	s := v1alpha1.MachineSelector{MatchExpressions: []v1alpha1.LabelRequirement{
		{Key: "pool", Operator: "In", Values: []v1alpha1.LabelValue{"web", "api"}},
	}}
	matches, err := s.Matches()
	fmt.Println(matches(map[string]string{"pool": "api"}), matches(map[string]string{"pool": "db"}), err)
	// Output:
	// true false <nil>
}
