// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// guests are drained when they say so, and tell of it: until then nobody knows when to look.
type guests struct {
	mu      sync.Mutex
	gone    bool
	looks   int
	node    string
	changed func(node string)
}

func (*guests) Held(map[string]string) (int64, bool) { return 0, false }

func (*guests) Cordon(context.Context, string, string, int64, bool) (bool, error) { return true, nil }

func (*guests) Release(context.Context, string, string, int64) (bool, error) { return true, nil }

func (g *guests) Drain(_ context.Context, node, _ string, _ int64, _ bool) (bool, string, time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.looks++
	g.node = node
	return g.gone, "a pod ends", 0, nil
}

func (g *guests) Watch(changed func(node string)) (stop func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed = changed
	return func() {}
}

func (g *guests) seen() (looks int, node string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.looks, g.node
}

// R-MA-22: a drain that knows that it goes on wakes its machine, which is not looked at after its time alone; Nodes without a drain wake nobody.
func TestDrainWakesItsMachine(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	g := &guests{}
	b.options.Drainer, b.options.Undrained, b.options.ShowEvery, b.drains = g, false, time.Hour, g
	b.run()
	b.create("a", map[string]any{"roles": []any{"worker"}, "providerConfig": map[string]any{"image": "a"}, "deletion": map[string]any{"diskPolicy": "Destroy"}})
	b.running("a")
	b.edit("a", `{"spec":{"providerConfig":{"image":"b"}}}`)
	b.eventually("a first look at the drain", func() (bool, error) { looks, _ := g.seen(); return looks > 0, nil })
	b.until("a", "stored as updating", func(m *v1alpha1.Machine) bool { return m != nil && m.Status.Update != nil })
	before, node := g.seen()
	g.changed("nobody")
	begun := time.Now()
	b.eventually("another look at the drain", func() (bool, error) {
		g.changed(node)
		looks, _ := g.seen()
		return looks > before, nil
	})
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("R-MA-22: the machine was looked at %v after its drain had changed", took)
	}
	g.mu.Lock()
	g.gone = true
	g.mu.Unlock()
	g.changed(node)
	b.until("a", "updated", func(m *v1alpha1.Machine) bool {
		return m != nil && m.Status.Phase == v1alpha1.MachinePhase(machine.PhaseRunning) && m.Status.ObservedGeneration == m.Generation && m.Status.Update == nil
	})
}
