// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// R-MA-01, R-MA-02, R-MA-03 and R-MA-16: one Machine object on the real API server is enough for a Node; its status tells what the Node reports; an edit of
// the kubelet version changes it up and down in place; and deleting it leaves nothing, neither at the provider nor in the cluster.
func TestLifeOnTheServer(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.run()
	b.create("a", map[string]any{
		"roles": []any{"worker"}, "versions": map[string]any{"kubelet": "v1.36.1"}, "providerConfig": map[string]any{"image": "a"},
		"nodeMetadata": map[string]any{"labels": map[string]any{"pool": "blue"}}, "deletion": map[string]any{"diskPolicy": "Destroy"},
	})
	m := b.running("a")
	n, err := b.core.CoreV1().Nodes().Get(b.ctx(), m.Status.NodeRef.Name, metav1.GetOptions{})
	b.must(err)
	if n.Spec.ProviderID != m.Spec.ProviderID || string(n.UID) != m.Status.NodeRef.UID {
		t.Errorf("the machine has the Node %+v with ProviderID %q, the Node is %q with %q", m.Status.NodeRef, m.Spec.ProviderID, n.UID, n.Spec.ProviderID)
	}
	closed := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == kube.UninitializedTaint })
	if n.Labels["pool"] != "blue" || closed || !strings.HasPrefix(n.Annotations[kube.MachineAnnotation], b.namespace+"/a/") {
		t.Errorf("the Node was not started: labels %v, taints %v, annotations %v", n.Labels, n.Spec.Taints, n.Annotations)
	}
	if v := m.Status.Versions; v == nil || v.Kubelet != n.Status.NodeInfo.KubeletVersion || v.Runtime == nil || v.Runtime.Name != "containerd" {
		t.Errorf("the status says %+v, and the Node reports %+v", v, n.Status.NodeInfo)
	}
	if !meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("the machine is not Ready: %+v", m.Status.Conditions)
	}
	b.upAndDown(m)
	b.delete("a")
	b.gone("a")
	b.nothingLeft(m)
}

// upAndDown changes the kubelet version in place, both ways.
func (b *bed) upAndDown(m *v1alpha1.Machine) {
	b.t.Helper()
	for _, version := range []string{"v1.36.2", "v1.36.1"} {
		b.edit("a", `{"spec":{"versions":{"kubelet":"`+version+`"}}}`)
		at := b.until("a", "at "+version, func(m *v1alpha1.Machine) bool {
			return m != nil && m.Status.Update == nil && m.Status.Versions != nil && m.Status.Versions.Kubelet == version
		})
		if at.UID != m.UID || at.Status.Incarnation != 1 || at.Spec.ProviderID != m.Spec.ProviderID {
			b.t.Errorf("R-MA-03: at %s the machine is another one: %s, incarnation %d, %s", version, at.UID, at.Status.Incarnation, at.Spec.ProviderID)
		}
	}
}

// nothingLeft looks for what a machine that is gone has left.
func (b *bed) nothingLeft(m *v1alpha1.Machine) {
	b.t.Helper()
	if left := b.cloud.Instances(); len(left) > 0 {
		b.t.Errorf("R-MA-02: the provider still has %+v", left)
	}
	nodes, err := b.core.CoreV1().Nodes().List(b.ctx(), metav1.ListOptions{})
	b.must(err)
	for _, n := range nodes.Items {
		if n.Spec.ProviderID == m.Spec.ProviderID {
			b.t.Errorf("R-MA-02: Node %q is still there", n.Name)
		}
	}
}

// R-MA-06: the same edit of the spec is made in place, by a replacement or not at all, as the provider plans. The machine keeps its UID in each case.
func TestProviderDecidesHowToUpdate(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.run()
	b.create("a", map[string]any{"providerConfig": map[string]any{"image": "a", "zone": "x"}, "deletion": map[string]any{"diskPolicy": "Destroy"}})
	first := b.running("a")
	b.edit("a", `{"spec":{"providerConfig":{"size":"l"}}}`)
	replaced := b.until("a", "replaced", func(m *v1alpha1.Machine) bool {
		return m != nil && m.Status.Incarnation == 2 && m.Status.Phase == "Running"
	})
	if replaced.UID != first.UID || replaced.Spec.ProviderID == first.Spec.ProviderID {
		t.Errorf("the machine was %s at %q and is %s at %q", first.UID, first.Spec.ProviderID, replaced.UID, replaced.Spec.ProviderID)
	}
	b.edit("a", `{"spec":{"providerConfig":{"zone":"y"}}}`)
	refused := b.until("a", "refused", func(m *v1alpha1.Machine) bool {
		return m != nil && meta.IsStatusConditionFalse(m.Status.Conditions, v1alpha1.ConditionUpdateSupported)
	})
	if c := meta.FindStatusCondition(refused.Status.Conditions, v1alpha1.ConditionUpdateSupported); c.Reason != "UnsupportedChange" {
		t.Errorf("the condition says %q", c.Reason)
	}
	if refused.Spec.ProviderID != replaced.Spec.ProviderID || refused.Status.Phase != "Running" {
		t.Errorf("something was touched: %q, phase %s", refused.Spec.ProviderID, refused.Status.Phase)
	}
	b.delete("a")
	b.gone("a")
}
