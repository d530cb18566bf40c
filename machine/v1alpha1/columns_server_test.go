// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
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
