// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/machine/v1alpha1"
)

// R-MA-16: what kubectl get prints of a machine answers where it is, what it waits for, and why.
func TestColumnsOfMachines(t *testing.T) {
	s := machines(t)
	s.create("columns", "{providerID: 'acme:///a/t-1', versions: {kubelet: v1.36.3}}",
		"ownerReferences: [{apiVersion: v1, kind: Node, name: other, uid: u-0}, {apiVersion: belay.dev/v1alpha1, kind: MachineSet, name: web-1, uid: u-1, controller: true}]")
	err := s.merge("columns", `
status:
  phase: Deleting
  step: {name: Draining, blocker: 2 pods are left, since: "2026-03-02T12:00:00Z"}
  nodeRef: {name: node-1, uid: u-1}
  versions: {kubelet: v1.36.2}
  failure: {reason: Unavailable, message: no route to the cloud}
`, "status")
	if err != nil {
		t.Fatal(err)
	}
	s.checkColumns("machines", "columns", map[string]any{
		"Phase": "Deleting", "Step": "Draining", "Node": "node-1", "Version": "v1.36.2", "Provider-ID": "acme:///a/t-1", "Waiting-For": "2 pods are left",
		"Failure": "Unavailable", "Message": "no route to the cloud", "Set": "web-1", "Wanted": "v1.36.3",
	})
}

// What kubectl get prints of sets, deployments and health checks answers how many machines there are, what they wait for, and why.
func TestColumnsOfGroups(t *testing.T) {
	s := machineSets(t)
	s.create("columns", equal+"replicas: 3", "ownerReferences: [{apiVersion: belay.dev/v1alpha1, kind: MachineDeployment, name: web, uid: u-1, controller: true}]")
	numbers := "replicas: 2, readyReplicas: 1, availableReplicas: 1, message: paused by spec.paused, failure: {reason: Stockout, message: no room}"
	if err := s.merge("columns", "status: {"+numbers+"}", "status"); err != nil {
		t.Fatal(err)
	}
	s.checkColumns("machinesets", "columns", map[string]any{
		"Wanted": int64(3), "Machines": int64(2), "Ready": int64(1), "Available": int64(1), "Waiting-For": "paused by spec.paused", "Failure": "Stockout",
		"Message": "no room", "Deployment": "web", "Version": nil,
	})
	s = machineDeployments(t)
	s.create("columns", withTemplate("versions: {kubelet: v1.36.3}"))
	if err := s.merge("columns", "status: {"+numbers+", updatedReplicas: 2, revision: 7}", "status"); err != nil {
		t.Fatal(err)
	}
	s.checkColumns("machinedeployments", "columns", map[string]any{
		"Wanted": int64(0), "Machines": int64(2), "Updated": int64(2), "Ready": int64(1), "Available": int64(1), "Waiting-For": "paused by spec.paused",
		"Failure": "Stockout", "Message": "no room", "Version": "v1.36.3", "Revision": int64(7),
	})
	s = healthChecks(t)
	s.create("columns", "selector: {matchLabels: {app: web}}\nmaxUnhealthy: 40%")
	err := s.merge("columns", "status: {expected: 5, healthy: 2, unhealthy: 3, message: 3 of 5, attempts: [{machine: web-1, uid: u, remedy: Reboot}]}", "status")
	if err != nil {
		t.Fatal(err)
	}
	s.checkColumns("machinehealthchecks", "columns", map[string]any{
		"Machines": int64(5), "Healthy": int64(2), "Unhealthy": int64(3), "Max-Unhealthy": "40%", "Waiting-For": "3 of 5", "Remedy": "Reboot", "Of": "web-1",
	})
}

// checkColumns checks the table of one object, whose age is not zero.
func (s *served) checkColumns(resource, name string, want map[string]any) {
	s.t.Helper()
	table := s.tableOf(resource, name)
	for i, column := range table.ColumnDefinitions {
		cell := table.Rows[0].Cells[i]
		if w, ok := want[column.Name]; ok && cell != w {
			s.t.Errorf("%s: column %q shows %v, want %v", resource, column.Name, cell, w)
		}
		if column.Name == "Age" && cell == "<unknown>" {
			s.t.Errorf("%s: there is no age", resource)
		}
		delete(want, column.Name)
	}
	if len(want) > 0 {
		s.t.Errorf("%s: columns without which the table doesn't answer: %v", resource, want)
	}
}

// tableOf asks for one object as kubectl get does.
func (s *served) tableOf(resource, name string) metav1.Table {
	s.t.Helper()
	config := shared.Env(s.t).Config()
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		s.t.Fatal(err)
	}
	raw, err := client.Get().Namespace(s.namespace).Resource(resource).Name(name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(deadline(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		s.t.Fatal(err)
	}
	if len(table.Rows) != 1 {
		s.t.Fatalf("got %d rows, want 1: %s", len(table.Rows), raw)
	}
	return table
}
