// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstage

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A Truth is what watches show of every version of the ledger and of the Nodes.
type Truth struct {
	limit int

	mu   sync.Mutex
	away map[string]bool
	now  Shown
}

// Shown is what was seen since the last report.
type Shown struct {
	// Wrong is what may never be.
	Wrong []string
	// Cordons are how often each node was cordoned.
	Cordons map[string]int
	// Slots are the most at a time, in so many Versions of the ledger.
	Slots, Versions int
}

// watch goes on until ctx ends.
func watch(ctx context.Context, f *Fleet) (*Truth, error) {
	t := &Truth{limit: f.Cap, away: map[string]bool{}, now: Shown{Cordons: map[string]int{}}}
	ledgers, err := f.Client.Resource(v1alpha1.DisruptionLedgersResource).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	nodes, err := f.Core.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		ledgers.Stop()
		return nil, err
	}
	go t.follow(ctx, ledgers, nodes)
	return t, nil
}

// follow takes in every version. A watch that ends early is wrong: nothing would be proven.
func (t *Truth) follow(ctx context.Context, ledgers, nodes apiwatch.Interface) {
	defer ledgers.Stop()
	defer nodes.Stop()
	for {
		var e apiwatch.Event
		var ok bool
		select {
		case <-ctx.Done():
			return
		case e, ok = <-ledgers.ResultChan():
		case e, ok = <-nodes.ResultChan():
		}
		t.mu.Lock()
		switch object := e.Object.(type) {
		case *corev1.Node:
			t.node(object, e.Type == apiwatch.Deleted)
		case *unstructured.Unstructured:
			t.ledger(object)
		default:
			t.fault("a watch has ended: %t, %+v", ok, e)
			ok = false
		}
		t.mu.Unlock()
		if !ok {
			return
		}
	}
}

func (t *Truth) fault(format string, args ...any) {
	t.now.Wrong = append(t.now.Wrong, fmt.Sprintf(format, args...))
}

func (t *Truth) ledger(u *unstructured.Unstructured) {
	var l v1alpha1.DisruptionLedger
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &l); err != nil {
		t.fault("a version of the ledger cannot be read: %v", err)
		return
	}
	n := len(l.Spec.Slots)
	if n > t.limit {
		t.fault("version %s of the ledger has %d slots, the cap is %d", l.ResourceVersion, n, t.limit)
	}
	t.now.Slots, t.now.Versions = max(t.now.Slots, n), t.now.Versions+1
}

func (t *Truth) node(n *corev1.Node, gone bool) {
	closed := n.Spec.Unschedulable && !gone
	if closed == t.away[n.Name] {
		return
	}
	if !closed {
		delete(t.away, n.Name)
		return
	}
	t.away[n.Name] = true
	t.now.Cordons[n.Name]++
	if len(t.away) > t.limit {
		t.fault("%d nodes are cordoned at a time, the cap is %d", len(t.away), t.limit)
	}
}

// Report returns what was seen, and begins anew.
func (t *Truth) Report() Shown {
	t.mu.Lock()
	defer t.mu.Unlock()
	shown := t.now
	t.now = Shown{Cordons: map[string]int{}}
	return shown
}
