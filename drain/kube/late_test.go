// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// unboundPods asks a cache for the pods that are bound to no node, as package drain does.
func unboundPods(t *testing.T, cache *kube.Cache) (names string, known bool) {
	t.Helper()
	view, ok := cache.View().(interface {
		UnboundPods() (pods []*corev1.Pod, known bool)
	})
	if !ok {
		t.Fatalf("%T has no UnboundPods", cache.View())
	}
	pods, known := view.UnboundPods()
	own := pods[:0:0]
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			t.Errorf("pod %s is bound to node %q", pod.Name, pod.Spec.NodeName)
		}
		if pod.Labels["unbound-of"] == t.Name() {
			own = append(own, pod)
		}
	}
	return podNames(own), known
}

// markOwn lets the test know its pods in a cluster with others.
func markOwn(t *testing.T) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"unbound-of": t.Name()} }
}

// TestUnboundPodsAreKnown shows that a pod is unbound until it is bound, and that a cache of one node does not claim
// to know.
func TestUnboundPodsAreKnown(t *testing.T) {
	c := newCluster(t)
	cache := syncedCache(t, c.env.Config(), kube.CacheOptions{DaemonSets: true})
	expect := func(want string) {
		t.Helper()
		eventually(t, func() string {
			if got, known := unboundPods(t, cache); got != want || !known {
				return "got " + got + ", want " + want
			}
			return ""
		})
	}
	c.runs(t, "late", "", markOwn(t))
	expect("[late]")
	c.bind(t, "late", c.namespace)
	expect("[]")
	if _, known := unboundPods(t, syncedCache(t, c.env.Config(), kube.CacheOptions{Node: c.namespace})); known {
		t.Error("a cache of one node claims to know the pods of none")
	}
}

// TestPodBoundAfterTheCordonIsEvicted shows a late binding: the API server binds a pod to a cordoned node, and the
// drain does not end before it has left.
func TestPodBoundAfterTheCordonIsEvicted(t *testing.T) {
	c := newCluster(t)
	node := c.nodeWithPods(t, "app")
	defer c.playKubelet(t, node)()
	c.runs(t, "late", "", markOwn(t))
	var once sync.Once
	options := kube.DrainOptions{Policy: evictAll("").Policy}
	options.Policy.Settle = nil
	options.Report = func(st drain.Status) {
		if !st.Started.IsZero() {
			once.Do(func() { c.bind(t, "late", node) })
		}
	}
	st, err := kube.DrainNode(t.Context(), c.env.Config(), node, options)
	if err != nil || st.Phase != drain.Drained || len(st.Evicted) != 2 {
		t.Errorf("got %+v and error %v, want the node Drained of the late pod too", st, err)
	}
}
