// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A truth is what watches have shown of every version of the ledger and of the Nodes.
type truth struct {
	limit int

	mu       sync.Mutex
	slots    int // the most at a time
	away     map[string]bool
	aways    int            // the most cordoned nodes at a time
	cordons  map[string]int // how often each node was cordoned
	wrong    []string
	versions int // of the ledger
}

// watchTruth watches until the test ends.
func watchTruth(f *fleet) *truth {
	f.t.Helper()
	t := &truth{limit: f.cap, away: map[string]bool{}, cordons: map[string]int{}}
	ledgers, err1 := f.client.Resource(v1alpha1.DisruptionLedgersResource).Watch(f.t.Context(), metav1.ListOptions{})
	nodes, err2 := f.core.CoreV1().Nodes().Watch(f.t.Context(), metav1.ListOptions{})
	must(f.t, err1)
	must(f.t, err2)
	go t.follow(f.t.Context(), ledgers, nodes)
	return t
}

// follow takes in every version. A watch that ends early is a mistake of the test, as nothing would be proven.
func (t *truth) follow(ctx context.Context, ledgers, nodes watch.Interface) {
	for {
		select {
		case <-ctx.Done():
			ledgers.Stop()
			nodes.Stop()
			return
		case e, ok := <-ledgers.ResultChan():
			if !ok {
				t.fault("the watch of the ledger has ended")
				return
			}
			t.ledger(e)
		case e, ok := <-nodes.ResultChan():
			if !ok {
				t.fault("the watch of the nodes has ended")
				return
			}
			if n, is := e.Object.(*corev1.Node); is {
				t.node(n, e.Type == watch.Deleted)
			}
		}
	}
}

func (t *truth) fault(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
}

func (t *truth) ledger(e watch.Event) {
	u, ok := e.Object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	var l v1alpha1.DisruptionLedger
	if err := apiruntime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &l); err != nil {
		t.fault("a version of the ledger cannot be read: %v", err)
		return
	}
	if n := len(l.Spec.Slots); n > t.limit {
		t.fault("version %s of the ledger has %d slots, the cap is %d", l.ResourceVersion, n, t.limit)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slots, t.versions = max(t.slots, len(l.Spec.Slots)), t.versions+1
}

func (t *truth) node(n *corev1.Node, gone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	closed := n.Spec.Unschedulable && !gone
	if closed == t.away[n.Name] {
		return
	}
	if !closed {
		delete(t.away, n.Name)
		return
	}
	t.away[n.Name] = true
	t.cordons[n.Name]++
	t.aways = max(t.aways, len(t.away))
	if len(t.away) > t.limit {
		t.wrong = append(t.wrong, fmt.Sprintf("%d nodes are cordoned at a time, the cap is %d", len(t.away), t.limit))
	}
}

// report returns what was wrong, and begins to count cordons anew.
func (t *truth) report() (wrong []string, cordons map[string]int, slots, versions int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wrong, cordons, slots, versions = t.wrong, t.cordons, t.slots, t.versions
	t.wrong, t.cordons, t.slots, t.versions = nil, map[string]int{}, 0, 0
	return wrong, cordons, slots, versions
}
