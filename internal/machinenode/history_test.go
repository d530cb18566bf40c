// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machinenode_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/machine/v1alpha1"
)

// A seen is one state of an object. Resource versions of one API server can be compared: at tells what came first.
type seen[O any] struct {
	at     uint64
	gone   bool
	object *O
}

// A history is every state that the API server had, in the order in which it was told.
type history struct {
	mu       sync.Mutex
	nodes    []seen[corev1.Node]
	pods     []seen[corev1.Pod]
	machines []seen[v1alpha1.Machine]
}

// watch begins a history, which goes on until the test ends.
func watch(t *testing.T, core kubernetes.Interface, machines dynamic.ResourceInterface) *history {
	t.Helper()
	h := &history{}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { stop(); all.Wait() })
	record := func(w apiwatch.Interface, err error, add func(apiwatch.Event) error) {
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for e := range w.ResultChan() {
				if err := add(e); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
			if ctx.Err() == nil {
				t.Error("a watch has ended before the test")
			}
		})
	}
	w, err := core.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	record(w, err, func(e apiwatch.Event) error { return add(h, &h.nodes, e) })
	w, err = core.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{})
	record(w, err, func(e apiwatch.Event) error { return add(h, &h.pods, e) })
	w, err = machines.Watch(ctx, metav1.ListOptions{})
	record(w, err, func(e apiwatch.Event) error { return add(h, &h.machines, e) })
	return h
}

func add[O any](h *history, to *[]seen[O], e apiwatch.Event) error {
	object := new(O)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(e.Object)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, object)
	}
	if err != nil {
		return err
	}
	meta, ok := any(object).(metav1.Object)
	if !ok || e.Type == apiwatch.Error {
		return fmt.Errorf("a watch says %v", e.Object)
	}
	at, err := strconv.ParseUint(meta.GetResourceVersion(), 10, 64)
	h.mu.Lock()
	defer h.mu.Unlock()
	*to = append(*to, seen[O]{at: at, gone: e.Type == apiwatch.Deleted, object: object})
	return err
}

// now is how far the history of Nodes is.
func (h *history) now() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.nodes) == 0 {
		return 0
	}
	return h.nodes[len(h.nodes)-1].at
}

// check returns what no history may have: what a machine says of versions before its Node has said it, and a Node that reports other versions than
// before though it was not cordoned, or though a pod of the Deployment that was on it before had not left.
func (h *history) check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.ahead(), h.unprepared())
}

func (h *history) ahead() error {
	for _, m := range h.machines {
		v := m.object.Status.Versions
		if v == nil {
			continue
		}
		said := slices.ContainsFunc(h.nodes, func(n seen[corev1.Node]) bool {
			return n.at < m.at && n.object.Spec.ProviderID == m.object.Spec.ProviderID && differ(v, n.object) == nil
		})
		if !said {
			return fmt.Errorf("R-MA-01: at %d the machine says %+v, %+v, which its Node had not said before", m.at, v, v.Runtime)
		}
	}
	return nil
}

// differ says in what the versions of a status are not those that a Node reports.
func differ(v *v1alpha1.Versions, n *corev1.Node) error {
	info := n.Status.NodeInfo
	is := map[string]string{"kubelet": v.Kubelet, "kernel": v.Other["kernel"], "os": v.Other["os"]}
	if v.Runtime != nil {
		is["runtime"] = v.Runtime.Name + "://" + v.Runtime.Version
	}
	for part, reported := range map[string]string{
		"kubelet": info.KubeletVersion, "runtime": info.ContainerRuntimeVersion, "kernel": info.KernelVersion, "os": info.OSImage,
	} {
		if is[part] != reported {
			return fmt.Errorf("the status has the %s %q, the Node reports %q", part, is[part], reported)
		}
	}
	return nil
}

func (h *history) unprepared() error {
	for i := 1; i < len(h.nodes); i++ {
		before, after := h.nodes[i-1], h.nodes[i]
		a, b := before.object.Status.NodeInfo, after.object.Status.NodeInfo
		if a.KubeletVersion == b.KubeletVersion && a.ContainerRuntimeVersion == b.ContainerRuntimeVersion || a.KubeletVersion == "" {
			continue
		}
		what := fmt.Sprintf("at %d the Node goes from %s, %s to %s, %s", after.at, a.KubeletVersion, a.ContainerRuntimeVersion, b.KubeletVersion, b.ContainerRuntimeVersion)
		if !before.object.Spec.Unschedulable {
			return fmt.Errorf("R-MA-03: %s, and was not cordoned", what)
		}
		if left := h.podsOn(after.object.Name, after.at); len(left) > 0 {
			return fmt.Errorf("R-MA-03: %s, with pods %v on it", what, left)
		}
	}
	return nil
}

// podsOn are the pods that a Node had at a time, but for those that had finished: they hold nothing on it, and no drain waits for them.
func (h *history) podsOn(node string, at uint64) []string {
	there := map[types.UID]string{}
	for _, p := range h.pods {
		switch {
		case p.at > at:
		case p.gone, p.object.Status.Phase == corev1.PodSucceeded, p.object.Status.Phase == corev1.PodFailed:
			delete(there, p.object.UID)
		case p.object.Spec.NodeName == node:
			there[p.object.UID] = p.object.Name
		}
	}
	var names []string
	for _, name := range there {
		names = append(names, name)
	}
	return names
}

// since are the states of Nodes after a time.
func (h *history) since(at uint64) (nodes []corev1.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.nodes {
		if n.at > at {
			nodes = append(nodes, *n.object)
		}
	}
	return nodes
}
