// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/scale"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// An autoscaler has the clients of the cluster-autoscaler, knows the group alone, and none of our types.
type autoscaler struct {
	t         *testing.T
	namespace string
	version   string
	dynamic.Interface
	scales scale.ScaleInterface
}

const group = "belay.dev"

// newAutoscaler finds the group and what it serves, as it does when it starts.
func newAutoscaler(t *testing.T, namespace string) *autoscaler {
	t.Helper()
	config := shared.Env(t).Config()
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := d.ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == group })
	if i < 0 {
		t.Fatalf("group %q is not served", group)
	}
	a := &autoscaler{t: t, namespace: namespace, version: groups.Groups[i].PreferredVersion.Version, scales: scales(t).Scales(namespace)}
	served, err := d.ServerResourcesForGroupVersion(group + "/" + a.version)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"machines", "machinesets", "machinesets/scale", "machinedeployments", "machinedeployments/scale"} {
		if !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == want && r.Namespaced }) {
			t.Errorf("%q is not served in namespaces", want)
		}
	}
	if a.Interface, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *autoscaler) resource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: a.version, Resource: plural}
}

func (a *autoscaler) list(plural string, selector labels.Selector) []unstructured.Unstructured {
	a.t.Helper()
	all, err := a.Resource(a.resource(plural)).Namespace(a.namespace).List(deadline(a.t), metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		a.t.Fatal(err)
	}
	return all.Items
}

// groups are the deployments, and the sets that belong to none, with bounds that are numbers and allow more than none.
func (a *autoscaler) groups() map[string][2]int {
	a.t.Helper()
	all := map[string][2]int{}
	for _, u := range append(a.list("machinedeployments", labels.Everything()), a.list("machinesets", labels.Everything())...) {
		if u.GetKind() == "MachineSet" && owner(&u, "MachineDeployment") != "" {
			continue
		}
		least, err1 := strconv.Atoi(u.GetAnnotations()[group+"/cluster-api-autoscaler-node-group-min-size"])
		most, err2 := strconv.Atoi(u.GetAnnotations()[group+"/cluster-api-autoscaler-node-group-max-size"])
		if err1 == nil && err2 == nil && most > least {
			all[u.GetKind()+"/"+u.GetName()] = [2]int{least, most}
		}
	}
	return all
}

// owner is the name of the owner of a kind.
func owner(u *unstructured.Unstructured, kind string) string {
	for _, r := range u.GetOwnerReferences() {
		if r.Kind == kind {
			return r.Name
		}
	}
	return ""
}

// nodes are the machines of a deployment: the ProviderID, or what stands for one that has failed, goes, or has none yet.
func (a *autoscaler) nodes(deployment string) (ids []string) {
	a.t.Helper()
	d := a.get("machinedeployments", deployment)
	raw, found, err := unstructured.NestedMap(d.Object, "spec", "selector")
	if err != nil || !found {
		a.t.Fatalf("spec.selector: %t, %v", found, err)
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, selector); err != nil {
		a.t.Fatal(err)
	}
	selects, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, m := range a.list("machines", selects) {
		_, failed, _ := unstructured.NestedString(m.Object, "status", "failureMessage")
		id, _, err := unstructured.NestedString(m.Object, "spec", "providerID")
		switch {
		case err != nil:
			a.t.Fatal(err)
		case failed:
			id = "failed " + m.GetName()
		case id != "" && m.GetDeletionTimestamp() != nil:
			id = "deleting " + m.GetName()
		case id == "":
			id = "pending " + m.GetName()
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (a *autoscaler) get(plural, name string) *unstructured.Unstructured {
	a.t.Helper()
	u, err := a.Resource(a.resource(plural)).Namespace(a.namespace).Get(deadline(a.t), name, metav1.GetOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	return u
}

// groupOf finds the deployment of a Node, by what stands behind the last slash of its ProviderID, and by owners.
func (a *autoscaler) groupOf(providerID string) (machine *unstructured.Unstructured, deployment string) {
	a.t.Helper()
	last := func(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }
	for _, m := range a.list("machines", labels.Everything()) {
		id, _, _ := unstructured.NestedString(m.Object, "spec", "providerID")
		if id == "" || last(id) != last(providerID) {
			continue
		}
		if machine != nil {
			a.t.Fatalf("machines %q and %q have the same last segment of their ProviderID", machine.GetName(), m.GetName())
		}
		machine = &m
		deployment = owner(a.get("machinesets", owner(&m, "MachineSet")), "MachineDeployment")
	}
	return machine, deployment
}

// target is what the group should have, and size what its scale says.
func (a *autoscaler) target(deployment string) (target int64, size int32) {
	a.t.Helper()
	target, found, err := unstructured.NestedInt64(a.get("machinedeployments", deployment).Object, "spec", "replicas")
	if err != nil || !found {
		a.t.Fatalf("spec.replicas: %t, %v", found, err)
	}
	s, err := a.scales.Get(deadline(a.t), a.resource("machinedeployments").GroupResource(), deployment, metav1.GetOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	return target, s.Spec.Replicas
}

func (a *autoscaler) resize(deployment string, n int) {
	a.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)
	if _, err := a.scales.Patch(deadline(a.t), a.resource("machinedeployments"), deployment, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		a.t.Fatal(err)
	}
	if target, size := a.target(deployment); target != int64(n) || size != int32(n) {
		a.t.Errorf("resized to %d, it is %d and says %d", n, target, size)
	}
}

// mark says of a machine that it is to go, or takes that back, by a write of all of it.
func (a *autoscaler) mark(m *unstructured.Unstructured, on bool) {
	a.t.Helper()
	m = a.get("machines", m.GetName())
	annotations := m.GetAnnotations()
	if delete(annotations, group+"/delete-machine"); on {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[group+"/delete-machine"] = time.Now().String()
	}
	m.SetAnnotations(annotations)
	if _, err := a.Resource(a.resource("machines")).Namespace(a.namespace).Update(deadline(a.t), m, metav1.UpdateOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

// rollingOut reports whether a set of an older revision has machines.
func (a *autoscaler) rollingOut(deployment string) bool {
	a.t.Helper()
	var newest int64
	wanted := map[int64]int64{}
	for _, s := range a.list("machinesets", labels.SelectorFromSet(labels.Set{"cluster.x-k8s.io/deployment-name": deployment})) {
		revision, err := strconv.ParseInt(s.GetAnnotations()["machinedeployment.clusters.x-k8s.io/revision"], 10, 64)
		if err != nil {
			a.t.Fatal(err)
		}
		replicas, _, _ := unstructured.NestedInt64(s.Object, "spec", "replicas")
		wanted[revision] += replicas
		newest = max(newest, revision)
	}
	delete(wanted, newest)
	for _, n := range wanted {
		if n > 0 {
			return true
		}
	}
	return false
}

// A pool is a deployment with its sets and machines on the server, written as controllers write them.
type pool struct {
	t                          *testing.T
	machines, sets, deployment *served
	namespace                  string
}

func newPool(t *testing.T) *pool {
	t.Helper()
	p := &pool{t: t, machines: machines(t), sets: machineSets(t), deployment: machineDeployments(t)}
	p.namespace = p.deployment.namespace
	p.machines.ResourceInterface, p.machines.namespace = p.in(v1alpha1.MachinesResource), p.namespace
	p.sets.ResourceInterface, p.sets.namespace = p.in(v1alpha1.MachineSetsResource), p.namespace
	p.deployment.create("web", equal, `annotations: {belay.dev/cluster-api-autoscaler-node-group-min-size: "0",
 belay.dev/cluster-api-autoscaler-node-group-max-size: "10", capacity.cluster-autoscaler.kubernetes.io/cpu: "4", capacity.cluster-autoscaler.kubernetes.io/memory: 16Gi}`)
	return p
}

// in is a client in the namespace of the pool.
func (p *pool) in(r schema.GroupVersionResource) dynamic.ResourceInterface {
	p.t.Helper()
	client, err := dynamic.NewForConfig(shared.Env(p.t).Config())
	if err != nil {
		p.t.Fatal(err)
	}
	return client.Resource(r).Namespace(p.namespace)
}

// set makes a set of the deployment.
func (p *pool) set(name string, revision, replicas int) machine.Set {
	p.t.Helper()
	d, err := typed[v1alpha1.MachineDeployment](p.t, must(p.t)(p.deployment.Get(deadline(p.t), "web", metav1.GetOptions{}))).Core()
	if err != nil {
		p.t.Fatal(err)
	}
	s := &v1alpha1.MachineSet{}
	err = s.SetCore(machine.Set{
		Key: machine.Key{Namespace: p.namespace, Name: name}, Owner: machine.Owner{UID: d.UID, Name: d.Name},
		Labels:      map[string]string{machine.DeploymentLabel: d.Name},
		Annotations: map[string]string{machine.RevisionAnnotation: strconv.Itoa(revision)},
		Spec:        machine.SetSpec{Replicas: replicas, Selector: d.Spec.Selector, Template: d.Spec.Template},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	c, err := typed[v1alpha1.MachineSet](p.t, must(p.t)(p.sets.Create(deadline(p.t), untyped(p.t, s), metav1.CreateOptions{}))).Core()
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// machine makes one of a set, perhaps with an instance.
func (p *pool) machine(s machine.Set, name, providerID string) {
	p.t.Helper()
	m := &v1alpha1.Machine{}
	c := s.Machine(machine.Reservation{Name: name})
	c.Spec.ProviderID = providerID
	if err := m.SetCore(c); err != nil {
		p.t.Fatal(err)
	}
	must(p.t)(p.machines.Create(deadline(p.t), untyped(p.t, m), metav1.CreateOptions{}))
}

// status stores that of a machine.
func (p *pool) status(name string, s machine.Status) {
	p.t.Helper()
	m := typed[v1alpha1.Machine](p.t, must(p.t)(p.machines.Get(deadline(p.t), name, metav1.GetOptions{})))
	c := core(p.t, m)
	c.Status = s
	m.SetStatus(c, nil, now())
	must(p.t)(p.machines.UpdateStatus(deadline(p.t), untyped(p.t, m), metav1.UpdateOptions{}))
}

// must ends a test that has an error.
func must(t *testing.T) func(*unstructured.Unstructured, error) *unstructured.Unstructured {
	return func(u *unstructured.Unstructured, err error) *unstructured.Unstructured {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
}
