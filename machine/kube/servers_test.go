// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// R-MA-18 and R-MA-02: machines in one API server and their Nodes in another are made, changed and removed. While the workload API is down, instances are made and
// released, and the machine that was deleted waits for its Node. While the management API is down, nothing is done to any instance; afterwards all goes on where it was,
// and in the end nothing is left, in neither of them.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	management, workload := testenv.Start(t, testenv.Options{}), testenv.Start(t, testenv.Options{})
	b := bedOn(t, management, workload)
	b.patient = true
	b.run()
	spec := map[string]any{
		"roles": []any{"worker"}, "versions": map[string]any{"kubelet": "v1.36.1"}, "providerConfig": map[string]any{"image": "a"},
		"deletion": map[string]any{"diskPolicy": "Destroy", "nodeTimeout": "5s"},
	}
	b.create("a", spec)
	first := b.running("a")
	b.apart(management, workload, first)
	b.upAndDown(first)

	b.must(workload.APIServer().Kill())
	b.delete("a")
	b.create("b", spec)
	b.until("b", "joining", func(m *v1alpha1.Machine) bool {
		return m != nil && m.Status.Step != nil && m.Status.Step.Name == string(machine.StepJoining)
	})
	waits := b.until("a", "waiting for its Node", func(m *v1alpha1.Machine) bool {
		return m != nil && m.Status.Step != nil && m.Status.Step.Name == string(machine.StepNode) && len(m.Status.StrayNodes) == 1
	})
	if s := waits.Status; s.Step.Blocker == "" || s.Step.Since.IsZero() || s.StrayNodes[0].Name != first.Status.NodeRef.Name || len(b.cloud.Instances()) != 1 {
		t.Errorf("R-MA-02: it is at %+v, strays %+v; the provider has %+v", s.Step, s.StrayNodes, b.cloud.Instances())
	}
	calls := b.cloud.Calls()
	b.must(management.APIServer().Kill())
	b.must(workload.APIServer().Start(b.ctx()))
	b.registered("b")
	if now := b.cloud.Calls(); now["Create"] != calls["Create"] || now["Delete"] != calls["Delete"] || now["Stop"] != calls["Stop"] {
		t.Errorf("R-MA-18: while the management API was down the provider was called: %v, before %v", now, calls)
	}
	b.must(management.APIServer().Start(b.ctx()))
	b.gone("a")
	second := b.running("b")
	b.delete("b")
	b.gone("b")
	b.nothingLeft(first)
	b.nothingLeft(second)
}

// apart checks that neither cluster has what is the other one's.
func (b *bed) apart(management, workload *testenv.Env, m *v1alpha1.Machine) {
	b.t.Helper()
	if _, err := b.core.CoreV1().Nodes().Get(b.ctx(), m.Status.NodeRef.Name, metav1.GetOptions{}); err != nil {
		b.t.Errorf("R-MA-18: the Node is not in the workload cluster: %v", err)
	}
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	if all, err := dynamic.NewForConfigOrDie(management.Config()).Resource(nodes).List(b.ctx(), metav1.ListOptions{}); err != nil || len(all.Items) > 0 {
		b.t.Errorf("R-MA-18: the management cluster has the Nodes %+v, %v", all, err)
	}
	if _, err := dynamic.NewForConfigOrDie(workload.Config()).Resource(v1alpha1.MachinesResource).List(b.ctx(), metav1.ListOptions{}); err == nil {
		b.t.Error("R-MA-18: the workload cluster has machines")
	}
}

// registered waits until as many Nodes have a kubelet as there are instances: the workload API works, and something has happened that a controller would act on.
func (b *bed) registered(name string) {
	b.t.Helper()
	b.eventually("the Node of "+name, func() (bool, error) {
		ctx, cancel := context.WithTimeout(b.ctx(), 10*time.Second)
		defer cancel()
		for _, i := range b.cloud.Instances() {
			n, err := b.core.CoreV1().Nodes().Get(ctx, "node-"+i.Token, metav1.GetOptions{})
			if err != nil || len(n.Status.Conditions) == 0 {
				return false, nil //nolint:nilerr // its kubelet tries again
			}
		}
		return true, nil
	})
}
