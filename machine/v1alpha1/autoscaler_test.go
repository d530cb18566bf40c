// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// R-MA-11: all that the cluster-autoscaler does with its provider for groups like this one works, by its own steps: it finds the group, grows it from
// zero, tells machines apart, marks the one that is to go before it shrinks the group to zero, and learns which have failed.
func TestAutoscalerContract(t *testing.T) {
	p := newPool(t)
	a := newAutoscaler(t, p.namespace)
	s := p.set("web-1", 1, 2)
	if got := a.groups(); len(got) != 1 || got["MachineDeployment/web"] != [2]int{0, 10} {
		t.Errorf("the groups are %v, want the deployment with 0 to 10", got)
	}
	if target, size := a.target("web"); target != 0 || size != 0 {
		t.Errorf("a new group has %d and says %d, want none", target, size)
	}
	a.resize("web", 2)
	p.machine(s, "web-1-a", "")
	p.machine(s, "web-1-b", "acme:///zone-b/t-b")
	if got, want := a.nodes("web"), []string{"acme:///zone-b/t-b", "pending web-1-a"}; !slices.Equal(got, want) {
		t.Errorf("the group has %q, want %q", got, want)
	}
	m, deployment := a.groupOf("acme:///elsewhere/t-b")
	if m == nil || m.GetName() != "web-1-b" || deployment != "web" {
		t.Fatalf("the Node belongs to %v of %q, want web-1-b of web", m, deployment)
	}
	a.mark(m, true)
	a.resize("web", 1)
	checkGoes(t, p, s, "web-1-b")
	a.mark(m, false)
	if got := a.get("machines", "web-1-b").GetAnnotations(); len(got) > 0 {
		t.Errorf("the mark was taken back, and the annotations are %v", got)
	}
	a.resize("web", 0)
}

// checkGoes checks which machine a set gives up that has one too many.
func checkGoes(t *testing.T, p *pool, s machine.Set, want string) {
	t.Helper()
	s.Spec.Replicas = 1
	view := machine.SetView{Set: s, Now: now(), Live: true}
	all, err := p.machines.List(deadline(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		view.Machines = append(view.Machines, core(t, typed[v1alpha1.Machine](t, &all.Items[i])))
	}
	if d := machine.DecideSet(view); len(d.Delete) != 1 || d.Delete[0].Name != want {
		t.Errorf("the set gives up %+v, want %q", d.Delete, want)
	}
}

// R-MA-11: a machine that has failed for good counts as one that will not become a Node, and one that is still tried, or that runs, does not.
func TestAutoscalerLearnsOfFailures(t *testing.T) {
	p := newPool(t)
	a := newAutoscaler(t, p.namespace)
	s := p.set("web-1", 1, 2)
	p.machine(s, "tried", "")
	p.machine(s, "up", "acme:///zone-b/t-b")
	failure := &machine.Failure{Reason: string(provider.Stockout), Message: "no capacity in zone-a", Since: now()}
	p.status("tried", machine.Status{Phase: machine.PhaseProvisioning, Failure: failure})
	p.status("up", machine.Status{Phase: machine.PhaseRunning, Failure: failure})
	if got, want := a.nodes("web"), []string{"acme:///zone-b/t-b", "pending tried"}; !slices.Equal(got, want) {
		t.Errorf("the group has %q, want %q", got, want)
	}
	p.status("tried", machine.Status{Phase: machine.PhaseFailed, Failure: failure})
	if got, want := a.nodes("web"), []string{"acme:///zone-b/t-b", "failed tried"}; !slices.Equal(got, want) {
		t.Errorf("after a stockout the group has %q, want %q", got, want)
	}
	u := a.get("machines", "tried")
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	message, _, _ := unstructured.NestedString(u.Object, "status", "failureMessage")
	if _, found, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "nodeRef"); found || phase != "Failed" || !strings.Contains(message, "zone-a") {
		t.Errorf("phase %q, message %q, a Node %t, want Failed, the reason, and none", phase, message, found)
	}
}

// R-MA-11: while a rollout is under way the autoscaler removes nothing, and it knows one by the revisions of sets.
func TestAutoscalerSeesRollouts(t *testing.T) {
	p := newPool(t)
	a := newAutoscaler(t, p.namespace)
	old := p.set("web-1", 9, 2)
	if a.rollingOut("web") {
		t.Error("with one set it takes the deployment for one that is rolled out")
	}
	p.set("web-2", 10, 1)
	if !a.rollingOut("web") {
		t.Error("with two sets that have machines it sees no rollout")
	}
	if err := p.sets.merge(old.Name, "spec: {replicas: 0}"); err != nil {
		t.Fatal(err)
	}
	if a.rollingOut("web") {
		t.Error("with one set that has machines it sees a rollout")
	}
}

// R-MA-11: what a Node of an empty group would have stands where the autoscaler looks: its size in annotations, its taints in the template.
func TestAutoscalerScalesFromZero(t *testing.T) {
	p := newPool(t)
	a := newAutoscaler(t, p.namespace)
	if err := p.deployment.merge("web", "spec: {template: {spec: {taints: [{key: gpu, value: a, effect: NoSchedule}]}}}"); err != nil {
		t.Fatal(err)
	}
	d := a.get("machinedeployments", "web")
	for key, want := range map[string]string{v1alpha1.CPUCapacityAnnotation: "4", v1alpha1.MemoryCapacityAnnotation: "16Gi"} {
		got, err := resource.ParseQuantity(d.GetAnnotations()[key])
		if err != nil || got.String() != want {
			t.Errorf("%s is %v, %v, want %s", key, got, err, want)
		}
	}
	taints, found, err := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "taints")
	if err != nil || !found || len(taints) != 1 {
		t.Fatalf("the taints are %v, %t, %v, want one", taints, found, err)
	}
	if got := taints[0].(map[string]any); got["key"] != "gpu" || got["value"] != "a" || got["effect"] != "NoSchedule" {
		t.Errorf("the taint is %v, want gpu=a:NoSchedule", got)
	}
	labels, _, err := unstructured.NestedStringMap(d.Object, "spec", "template", "metadata", "labels")
	if err != nil || labels["app"] != "web" {
		t.Errorf("the labels of the template are %v, %v", labels, err)
	}
}

// The keys are those that the autoscaler makes of the group, and those that it has for any group.
func TestAutoscalerKeys(t *testing.T) {
	for got, want := range map[string]string{
		v1alpha1.MinSizeAnnotation: group + "/cluster-api-autoscaler-node-group-min-size",
		v1alpha1.MaxSizeAnnotation: group + "/cluster-api-autoscaler-node-group-max-size",
		v1alpha1.ClusterNameLabel:  group + "/cluster-name",
		machine.DeleteAnnotation:   group + "/delete-machine",
		machine.RevisionAnnotation: "machinedeployment.clusters.x-k8s.io/revision",
		machine.PausedAnnotation:   "cluster.x-k8s.io/paused",
		machine.DeploymentLabel:    "cluster.x-k8s.io/deployment-name",

		v1alpha1.CPUCapacityAnnotation:     capacity + "cpu",
		v1alpha1.MemoryCapacityAnnotation:  capacity + "memory",
		v1alpha1.DiskCapacityAnnotation:    capacity + "ephemeral-disk",
		v1alpha1.PodsCapacityAnnotation:    capacity + "maxPods",
		v1alpha1.GPUTypeCapacityAnnotation: capacity + "gpu-type",
		v1alpha1.GPUCapacityAnnotation:     capacity + "gpu-count",
		v1alpha1.LabelsCapacityAnnotation:  capacity + "labels",
		v1alpha1.TaintsCapacityAnnotation:  capacity + "taints",
	} {
		if got != want || v1alpha1.GroupVersion.Group != group {
			t.Errorf("the key is %q, want %q", got, want)
		}
	}
}

const capacity = "capacity.cluster-autoscaler.kubernetes.io/"
