// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machinenode_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/internal/tier"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// TestMachineIsANode applies a Machine, and nothing else, to a real API server: it becomes a Node with a real kubelet and a real containerd of the
// versions that it asks for, and its status says what the Node reports (R-MA-01). Edits of the kubelet's version take the same machine up and down
// again (R-MA-03), and so do those of the runtime's (R-MA-04), each time after the Node was cordoned and emptied; another runtime is refused, with
// nothing touched (R-MA-04). Its end leaves no process, mount, cgroup, interface or file of it.
func TestMachineIsANode(t *testing.T) {
	tier.System(t, tier.Root, tier.Kubelet)
	s := newStage(t)
	older, newer := s.words["OLD_KUBELET"], s.words["NEW_KUBELET"]
	debian, other := s.words["DEBIAN_CONTAINERD"], s.words["OTHER_CONTAINERD"]
	if older == newer || debian == other {
		t.Fatalf("there are the kubelets %s and %s, and containerd %s and %s: want two of each", older, newer, debian, other)
	}
	s.apply(older, "containerd", debian)
	m := s.becomes(older, debian)
	s.joined(m)
	s.work(m)
	s.leavesTraces(m)
	for _, to := range []struct{ row, kubelet, runtime string }{
		{"R-MA-03", newer, debian}, {"R-MA-03", older, debian}, {"R-MA-04", older, other}, {"R-MA-04", older, debian},
	} {
		s.change(m, to.row, to.kubelet, to.runtime)
	}
	s.refuses(m, older, debian)
	s.ends(m)
	s.must(s.history.check())
	s.nothingLeft(m)
}

// until waits for something that has to happen.
func (s *stage) until(what string, done func() error) {
	s.t.Helper()
	begun := time.Now()
	if err := testproc.Poll(limit, done); err != nil {
		s.t.Fatalf("waiting for %s: %v", what, err)
	}
	s.t.Logf("%s: after %s", what, time.Since(begun).Round(100*time.Millisecond))
}

// apply is what a user does, for a machine that is there too.
func (s *stage) apply(kubelet, name, version string) {
	s.t.Helper()
	o := s.manifest(kubelet, name, version)
	_, err := s.machines.Apply(s.t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "user", Force: true})
	s.must(err)
}

func (s *stage) machine() (*v1alpha1.Machine, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	u, err := s.machines.Get(ctx, "worker", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	m := &v1alpha1.Machine{}
	return m, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, m)
}

// becomes waits until the machine runs with these versions, and nothing is under way.
func (s *stage) becomes(kubelet, containerd string) (m *v1alpha1.Machine) {
	s.t.Helper()
	s.until(fmt.Sprintf("a machine with the kubelet %s and containerd %s", kubelet, containerd), func() error {
		var err error
		if m, err = s.machine(); err != nil {
			return err
		}
		v := m.Status.Versions
		done := m.Status.Phase == "Running" && m.Status.ObservedGeneration == m.Generation && m.Status.Update == nil && v != nil && v.Runtime != nil &&
			v.Kubelet == kubelet && v.Runtime.Name == "containerd" && v.Runtime.Version == containerd &&
			meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReady)
		if done {
			return nil
		}
		return fmt.Errorf("it is %s at %+v, failure %+v, update %+v, versions %+v", m.Status.Phase, m.Status.Step, m.Status.Failure, m.Status.Update, v)
	})
	return m
}

func (s *stage) node(m *v1alpha1.Machine) *corev1.Node {
	s.t.Helper()
	n, err := s.core.CoreV1().Nodes().Get(s.t.Context(), m.Status.NodeRef.Name, metav1.GetOptions{})
	s.must(err)
	return n
}

// joined checks the Node of a machine.
func (s *stage) joined(m *v1alpha1.Machine) {
	s.t.Helper()
	n := s.node(m)
	if err := differ(m.Status.Versions, n); err != nil {
		s.t.Errorf("R-MA-01: %v", err)
	}
	if n.Spec.ProviderID != m.Spec.ProviderID || string(n.UID) != m.Status.NodeRef.UID || n.Labels["pool"] != "blue" {
		s.t.Errorf("R-MA-01: the machine has the Node %+v, ProviderID %q; the Node is %q with %q, labels %v", m.Status.NodeRef, m.Spec.ProviderID, n.UID, n.Spec.ProviderID, n.Labels)
	}
	if closed := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == kube.UninitializedTaint }); closed || n.Spec.Unschedulable {
		s.t.Errorf("R-MA-01: no work may come: unschedulable %t, taints %v", n.Spec.Unschedulable, n.Spec.Taints)
	}
}

// change edits the versions of a machine with work on it.
func (s *stage) change(first *v1alpha1.Machine, row, kubelet, containerd string) {
	s.t.Helper()
	pod, at := s.works(first), s.history.now()
	s.apply(kubelet, "containerd", containerd)
	m := s.becomes(kubelet, containerd)
	if m.UID != first.UID || m.Status.Incarnation != 1 || m.Spec.ProviderID != first.Spec.ProviderID || m.Status.NodeRef.UID != first.Status.NodeRef.UID {
		s.t.Errorf("%s: it was machine %s at %q with Node %+v, and is %s, incarnation %d, at %q with Node %+v", row,
			first.UID, first.Spec.ProviderID, first.Status.NodeRef, m.UID, m.Status.Incarnation, m.Spec.ProviderID, m.Status.NodeRef)
	}
	s.joined(m)
	if !slices.ContainsFunc(s.history.since(at), func(n corev1.Node) bool { return n.Spec.Unschedulable }) {
		s.t.Errorf("%s: the Node was never cordoned", row)
	}
	if next := s.works(m); next.UID == pod.UID {
		s.t.Errorf("%s: pod %q was not evicted", row, pod.Name)
	}
}

// refuses asks for a runtime that the machine's program can't run, and takes it back.
func (s *stage) refuses(first *v1alpha1.Machine, kubelet, containerd string) {
	s.t.Helper()
	pod, process, at := s.works(first), s.process(first), s.history.now()
	s.apply(kubelet, "cri-o", "1.36.0")
	var m *v1alpha1.Machine
	s.until("the refusal of cri-o", func() error {
		var err error
		if m, err = s.machine(); err != nil {
			return err
		}
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpdateSupported)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "UnsupportedChange" || c.ObservedGeneration != m.Generation {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
	s.joined(m)
	if m.Status.Phase != "Running" || m.UID != first.UID || m.Spec.ProviderID != first.Spec.ProviderID {
		s.t.Errorf("R-MA-04: something was touched: phase %s, machine %s at %q", m.Status.Phase, m.UID, m.Spec.ProviderID)
	}
	s.apply(kubelet, "containerd", containerd)
	s.becomes(kubelet, containerd)
	touched := slices.ContainsFunc(s.history.since(at), func(n corev1.Node) bool { return n.Spec.Unschedulable })
	if now := s.works(m); touched || now.UID != pod.UID || s.process(m) != process {
		s.t.Errorf("R-MA-04: something was touched: cordoned %t, pod %s was %s, process %s was %s", touched, now.UID, pod.UID, s.process(m), process)
	}
}

// process is the first process of a machine, as its provider has it.
func (s *stage) process(m *v1alpha1.Machine) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.root, "machines", m.Status.Token, "instance.json"))
	s.must(err)
	var record struct{ Process json.RawMessage }
	s.must(json.Unmarshal(data, &record))
	return string(record.Process)
}

// ends deletes the machine.
func (s *stage) ends(m *v1alpha1.Machine) {
	s.t.Helper()
	s.must(s.machines.Delete(s.t.Context(), m.Name, metav1.DeleteOptions{}))
	s.until("the end of the machine", func() error {
		_, err := s.machine()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	})
	if _, err := s.core.CoreV1().Nodes().Get(s.t.Context(), m.Status.NodeRef.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		s.t.Errorf("R-MA-02: the Node is still there: %v", err)
	}
	all, err := s.provider.List(s.t.Context(), provider.Scope{Cluster: s.namespace})
	if err != nil || len(all) > 0 {
		s.t.Errorf("R-MA-02: the provider still has %+v: %v", all, err)
	}
}
