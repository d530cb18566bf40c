// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/demo/internal/story"
	"github.com/belayproject/belay/internal/testenv"
)

// The controller manager finishes the deletion of namespaces.
var shared = testenv.Shared{Options: testenv.Options{With: []testenv.Component{testenv.ControllerManager}}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func connect(t *testing.T, run string) *Cluster {
	t.Helper()
	return connectTo(t, shared.Env(t), run)
}

func connectTo(t *testing.T, env *testenv.Env, run string) *Cluster {
	t.Helper()
	c, err := Connect(env.Kubeconfig(), run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c
}

// all counts the run's objects of every resource.
func all(t *testing.T, c *Cluster) int {
	t.Helper()
	n := 0
	for _, r := range resources() {
		found, err := c.find(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		n += len(found)
	}
	return n
}

var config = story.Config{Name: "v1", Payload: "payload", Trial: 4 * time.Second, CrashLoopThreshold: 2}

func TestWhatIsCreatedIsRemoved(t *testing.T) {
	// A control plane of its own: on the shared one another test may have installed the resource definition, which then is not the demo's.
	c := connectTo(t, testenv.Start(t, shared.Options), "created")
	if err := c.SetUp(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	ref, err := c.Push(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	configs, err := list[v1alpha1.NodeConfig](t.Context(), c, v1alpha1.NodeConfigsResource)
	if err != nil || len(configs) != 2 {
		t.Fatalf("NodeConfigs: got %d, %v; want 2", len(configs), err)
	}
	for _, nc := range configs {
		got := nc.Spec.Source.ConfigMapRef
		want := v1alpha1.ConfigMapRef{Namespace: "belay-demo-created", Name: ref.Name, UID: ref.UID, Digest: ref.Digest, Key: Key}
		if *got != want {
			t.Errorf("source of %s: got %+v, want %+v", nc.Name, *got, want)
		}
		if owners := nc.GetOwnerReferences(); len(owners) != 1 || owners[0].Kind != "Node" || owners[0].Name != nc.Name {
			t.Errorf("owner of %s: got %+v, want its Node", nc.Name, owners)
		}
	}
	if got, want := all(t, c), 2+2+1+1+len(v1alpha1.CRDs()); got != want {
		t.Errorf("objects with the run's label: got %d, want %d", got, want)
	}
	if err := c.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := all(t, c); got != 0 {
		t.Errorf("objects with the run's label after Remove: got %d, want 0", got)
	}
	if found, err := c.exists(t.Context(), crds, "nodeconfigs.belay.dev"); err != nil || found {
		t.Errorf("the resource definition that the demo created: found %v, %v; want it gone", found, err)
	}
}

func TestNothingOfOthersIsTouched(t *testing.T) {
	env := shared.Env(t)
	if err := env.InstallCRDs(t.Context(), v1alpha1.CRDs()...); err != nil {
		t.Fatal(err)
	}
	mine := connect(t, "mine")
	foreign := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": NodeName(2)},
	}}
	before, err := mine.client.Resource(nodes).Create(t.Context(), foreign, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = mine.SetUp(t.Context(), 3)
	if err == nil || !strings.Contains(err.Error(), `nodes "belay-demo-2": it exists and is not this run's`) {
		t.Errorf("SetUp beside a foreign Node: got %v, want an error that names it", err)
	}
	if err := mine.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := mine.client.Resource(nodes).Get(t.Context(), NodeName(2), metav1.GetOptions{})
	if err != nil {
		t.Fatalf("the foreign Node: %v", err)
	}
	unschedulable, _, _ := unstructured.NestedBool(after.Object, "spec", "unschedulable")
	if after.GetUID() != before.GetUID() || after.GetLabels()[RunLabel] != "" || after.GetDeletionTimestamp() != nil || unschedulable {
		t.Errorf("the foreign Node: got %+v, want it left alone", after.Object)
	}
	if err := mine.client.Resource(nodes).Delete(t.Context(), NodeName(2), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if found, err := mine.exists(t.Context(), crds, "nodeconfigs.belay.dev"); err != nil || !found {
		t.Errorf("the resource definition that was there before: found %v, %v; want it left alone", found, err)
	}
	if left := all(t, mine); left != 0 {
		t.Errorf("objects with the run's label: got %d, want 0", left)
	}
}

func TestAssignRefusesAnotherObjectOfTheName(t *testing.T) {
	c := connect(t, "recreated")
	if err := c.SetUp(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	c.nodes[0].uid = types.UID("00000000-0000-4000-8000-000000000000")
	if _, err := c.Push(t.Context(), config); !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
		t.Errorf("Push to a NodeConfig with another UID: got %v, want it refused", err)
	}
}

func TestReadSaysWhoIsSilent(t *testing.T) {
	c := connect(t, "silent")
	if err := c.SetUp(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	reports, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := reports[NodeName(1)].Err; !errors.Is(got, errNoReport) || len(reports) != 1 {
		t.Errorf("got %d reports, error %v; want 1, %v", len(reports), got, errNoReport)
	}
}
