// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machinenode_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/machine/v1alpha1"
)

// R-MA-01, R-MA-03: what the proof looks at tells a good history from one of a controller that copies the spec into the status, or that changes a Node
// with work on it.
func TestBrokenHistoriesAreCaught(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		broken     func(h *history)
	}{
		{"none", "", func(*history) {}},
		{"none, as the pod has finished", "", func(h *history) { h.pods[1].gone, h.pods[1].object.Status.Phase = false, corev1.PodSucceeded }},
		{"the spec is copied when it is edited", "R-MA-01: at 25", func(h *history) { h.machines[0].object.Status.Versions.Kubelet, h.machines[0].at = "v2", 25 }},
		{"the spec is copied, and has no kernel", "R-MA-01: at 15", func(h *history) { h.machines[0].object.Status.Versions.Other = nil }},
		{"the spec is copied, and has no runtime", "R-MA-01: at 15", func(h *history) { h.machines[0].object.Status.Versions.Runtime = nil }},
		{"the runtime of the spec", "R-MA-01: at 45", func(h *history) { h.machines[1].object.Status.Versions.Runtime.Version = "9" }},
		{"the Node is not cordoned", "was not cordoned", func(h *history) { h.nodes[1].object.Spec.Unschedulable = false }},
		{"the pod stays", "with pods [web]", func(h *history) { h.pods = h.pods[:1] }},
		{"the pod leaves late", "with pods [web]", func(h *history) { h.pods[1].at = 50 }},
	} {
		h := goodHistory()
		c.broken(h)
		err := h.check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// goodHistory takes a Node from v1 to v2.
func goodHistory() *history {
	node := func(at uint64, kubelet string, cordoned bool) seen[corev1.Node] {
		n := &corev1.Node{}
		n.Name, n.Spec.ProviderID, n.Spec.Unschedulable = "n", "local:///n", cordoned
		n.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: kubelet, ContainerRuntimeVersion: "containerd://1", KernelVersion: "6", OSImage: "os"}
		return seen[corev1.Node]{at: at, object: n}
	}
	machine := func(at uint64, kubelet string) seen[v1alpha1.Machine] {
		m := &v1alpha1.Machine{}
		m.Spec.ProviderID = "local:///n"
		m.Status.Versions = &v1alpha1.Versions{
			Kubelet: kubelet, Runtime: &v1alpha1.Runtime{Name: "containerd", Version: "1"}, Other: map[string]string{"kernel": "6", "os": "os"},
		}
		return seen[v1alpha1.Machine]{at: at, object: m}
	}
	pod := func(at uint64, gone bool) seen[corev1.Pod] {
		p := &corev1.Pod{}
		p.Name, p.UID, p.Spec.NodeName = "web", "1", "n"
		return seen[corev1.Pod]{at: at, gone: gone, object: p}
	}
	return &history{
		nodes:    []seen[corev1.Node]{node(10, "v1", false), node(30, "v1", true), node(40, "v2", true)},
		pods:     []seen[corev1.Pod]{pod(12, false), pod(28, true)},
		machines: []seen[v1alpha1.Machine]{machine(15, "v1"), machine(45, "v2")},
	}
}
