// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// runGroups runs the controllers of machines and of what makes them.
func (b *bed) runGroups() {
	b.t.Helper()
	groups, err := kube.NewGroups(b.groups, b.namespace, b.machines)
	b.must(err)
	doctor, err := kube.NewDoctor(b.nodes)
	b.must(err)
	c, err := controller.NewGroups(controller.GroupOptions{
		Cluster: b.namespace, Groups: groups, Doctor: doctor, Provider: b.options.Provider,
	})
	b.must(err)
	ctx, stop := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- kube.RunGroups(ctx, kube.GroupLoop{Controller: c, Groups: groups, Machines: b.machines, Nodes: b.nodes})
	}()
	b.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.t.Error(err)
		}
	})
	b.run()
}

func (b *bed) deployment(name string, replicas int64, image string) {
	b.t.Helper()
	labels := map[string]any{"pool": name}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"roles": []any{"worker"}, "providerConfig": map[string]any{"image": image, "size": "s"}, "deletion": map[string]any{"diskPolicy": "Destroy"},
		}},
	}}}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind(v1alpha1.MachineDeploymentKind)
	o.SetName(name)
	_, err := b.deployments().Create(b.ctx(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	b.must(err)
}

// ready waits until a deployment has so many machines of its present template that are ready, and no other.
func (b *bed) ready(name string, replicas int32) *v1alpha1.MachineDeployment {
	b.t.Helper()
	d := &v1alpha1.MachineDeployment{}
	err := wait.PollUntilContextTimeout(b.t.Context(), 100*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		u, err := b.deployments().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		*d = v1alpha1.MachineDeployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
			return false, err
		}
		s := d.Status
		return s.ObservedGeneration == d.Generation && s.Replicas == replicas && s.UpdatedReplicas == replicas && s.ReadyReplicas == replicas, nil
	})
	if err != nil {
		b.t.Fatalf("deployment %q has no %d machines: %v; its status: %+v", name, replicas, err, d.Status)
	}
	return d
}

// R-MA-09 and R-MA-11: an autoscaler sets the scale of a deployment and needs no more: machines come, with Nodes, and go again, the marked one first. An edit of
// the template replaces each of them. In the end the provider has what is wanted, and at no time more than one machine beyond it.
func TestDeploymentOnTheServer(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.runGroups()
	b.deployment("pool", 0, "a")
	b.scale("pool", 3)
	b.ready("pool", 3)
	marked := b.machinesOf("pool")[1]
	b.edit(marked, fmt.Sprintf(`{"metadata":{"annotations":{%q:"yes"}}}`, machine.DeleteAnnotation))
	b.scale("pool", 2)
	b.gone(marked)
	before := b.ready("pool", 2)
	_, err := b.deployments().Patch(b.ctx(), "pool", types.MergePatchType, []byte(`{"spec":{"template":{"spec":{"providerConfig":{"size":"l"}}}}}`), metav1.PatchOptions{})
	b.must(err)
	b.eventually("a new revision", func() (bool, error) { return b.cloudHas(2, "l") })
	after := b.ready("pool", 2)
	if after.Generation == before.Generation {
		t.Error("the template was not changed")
	}
	b.scale("pool", 0)
	b.ready("pool", 0)
	b.eventually("empty", func() (bool, error) { return len(b.cloud.Instances()) == 0, nil })
}

// R-MA-11: a stockout comes back as data: on the machine, as the phase and the message that the cluster-autoscaler reads.
func TestStockoutIsData(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	end := b.cloud.Inject(machinetest.Stockout)
	b.run()
	b.create("a", map[string]any{"providerConfig": map[string]any{"image": "a"}})
	m := b.until("a", "failed", func(m *v1alpha1.Machine) bool { return m != nil && m.Status.Phase == "Failed" })
	if m.Status.FailureReason != "Stockout" || m.Status.FailureMessage == "" {
		t.Errorf("failureReason %q, failureMessage %q", m.Status.FailureReason, m.Status.FailureMessage)
	}
	end()
	b.edit("a", fmt.Sprintf(`{"metadata":{"annotations":{%q:"now"}}}`, machine.RetryAnnotation))
	if m := b.running("a"); m.Status.FailureReason != "" || m.Status.Incarnation != 1 {
		t.Errorf("it runs, with failureReason %q and incarnation %d", m.Status.FailureReason, m.Status.Incarnation)
	}
}

// scale does what an autoscaler does.
func (b *bed) scale(name string, replicas int32) {
	b.t.Helper()
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.namespace},
		Spec: autoscalingv1.ScaleSpec{Replicas: replicas},
	})
	b.must(err)
	_, err = b.deployments().Update(b.ctx(), &unstructured.Unstructured{Object: o}, metav1.UpdateOptions{}, "scale")
	b.must(err)
}

func (b *bed) machinesOf(pool string) (names []string) {
	b.t.Helper()
	all, err := b.client().List(b.ctx(), metav1.ListOptions{LabelSelector: "pool=" + pool})
	b.must(err)
	for _, m := range all.Items {
		names = append(names, m.GetName())
	}
	return names
}

// cloudHas says whether all instances are of that size.
func (b *bed) cloudHas(n int, size string) (bool, error) {
	all := b.cloud.Instances()
	if len(all) > n+1 {
		return false, fmt.Errorf("R-MA-09: there are %d instances, and at most %d are wanted with a surge of 1", len(all), n+1)
	}
	for _, i := range all {
		made, _ := b.cloud.Made(i.Token)
		var c struct{ Size string }
		if err := json.Unmarshal(made.Desired.Config, &c); err != nil || c.Size != size {
			return false, err
		}
	}
	return len(all) == n, nil
}
