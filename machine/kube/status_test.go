// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// stored is an object of a version of the definitions that has more in its status.
func stored(kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "fleet", "name": "a", "uid": "u-a", "resourceVersion": "7"},
		"spec":     map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"pool": "a"}}, "template": map[string]any{}},
		"status":   map[string]any{"phase": "Pending", "replicas": int64(3), "future": "kept", "step": map[string]any{"name": "Pending", "future": "kept"}},
	}}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind(kind)
	return o
}

var fleetA = machine.Key{Namespace: "fleet", Name: "a"}

// putMachine stores a status of a machine.
func putMachine(ctx context.Context, s kube.Machines) error {
	m, err := s.Live(ctx, fleetA)
	if err != nil {
		return err
	}
	m.Phase, m.Step = "", machine.Step{Name: machine.StepReady, Since: time.Unix(1e9, 0)}
	_, err = s.PutStatus(ctx, m)
	return err
}

// putSet stores a status of a set.
func putSet(ctx context.Context, s kube.Groups) error {
	group, err := s.Read(ctx, "fleet", true)
	if err != nil {
		return err
	}
	set := group.Sets[0]
	set.Status.Replicas = 4
	_, err = s.PutSetStatus(ctx, set)
	return err
}

// newStores returns what reads and writes machines and their groups.
func newStores(t *testing.T, client dynamic.Interface, namespace string) (kube.Machines, kube.Groups) {
	t.Helper()
	machines, err := kube.NewMachines(client, namespace)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := kube.NewGroups(client, namespace, machines)
	if err != nil {
		t.Fatal(err)
	}
	return machines, groups
}

// holding is a server that has these.
func holding(all ...runtime.Object) *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		v1alpha1.MachinesResource: "MachineList", v1alpha1.MachineSetsResource: "MachineSetList", v1alpha1.MachineDeploymentsResource: "MachineDeploymentList",
		v1alpha1.MachineHealthChecksResource: "MachineHealthCheckList",
	}, all...)
}

// R-MA-29: what is read live is all from the server, health checks too: what they have on record keeps its slots, whatever a cache shows.
func TestLiveReadHasHealthChecks(t *testing.T) {
	t.Parallel()
	client := holding(stored(v1alpha1.MachineHealthCheckKind))
	_, groups := newStores(t, client, "fleet")
	for live, want := range map[bool]int{false: 0, true: 1} {
		if group, err := groups.Read(t.Context(), "fleet", live); err != nil || len(group.Checks) != want {
			t.Errorf("R-MA-29: live %v: %+v, want %d; %v", live, group.Checks, want, err)
		}
	}
}

// R-MA-16: a status is written as what has changed in it, of the version that was read: what a newer version of the definitions keeps there stays.
func TestStatusKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	client := holding(stored(v1alpha1.MachineKind), stored(v1alpha1.MachineSetKind))
	machines, groups := newStores(t, client, "fleet")
	if err := putMachine(t.Context(), machines); err != nil {
		t.Fatal(err)
	}
	if err := putSet(t.Context(), groups); err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[schema.GroupVersionResource]map[string]any{
		v1alpha1.MachinesResource: {"future": "kept", "phase": nil}, v1alpha1.MachineSetsResource: {"future": "kept", "replicas": int64(4)},
	} {
		u, err := client.Resource(resource).Namespace("fleet").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		status, _, err := unstructured.NestedMap(u.Object, "status")
		if err != nil {
			t.Fatal(err)
		}
		for field, value := range want {
			if status[field] != value {
				t.Errorf("R-MA-16: %s: status.%s is %v, want %v", resource.Resource, field, status[field], value)
			}
		}
	}
	u, err := client.Resource(v1alpha1.MachinesResource).Namespace("fleet").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if future, _, _ := unstructured.NestedString(u.Object, "status", "step", "future"); future != "kept" {
		t.Errorf("R-MA-16: a field within a field is lost: %v", u.Object["status"])
	}
	guarded(t, client.Actions())
}

// guarded checks that each write names the version that was read.
func guarded(t *testing.T, actions []clienttesting.Action) {
	t.Helper()
	for _, a := range actions {
		patch, ok := a.(clienttesting.PatchAction)
		if !ok {
			continue
		}
		var body struct{ Metadata metav1.ObjectMeta }
		err := json.Unmarshal(patch.GetPatch(), &body)
		if err != nil || a.GetSubresource() != "status" || body.Metadata.ResourceVersion != "7" || body.Metadata.UID != "u-a" {
			t.Errorf("the patch of %s/%s is %s, %v", a.GetResource().Resource, a.GetSubresource(), patch.GetPatch(), err)
		}
	}
}
