// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/machine"
)

// released reconciles until a machine waits for nothing but the removal of a Node.
func (w *world) released(key machine.Key) {
	w.t.Helper()
	w.until(key, "waiting for its Node", func(m machine.Machine, there bool) bool {
		return there && m.Step.Name == machine.StepNode && len(m.Strays) == 1 && len(w.cloud.Instances()) == 0
	})
}

// R-MA-02: a controller is killed before and after each call of an end during which the workload API goes away and comes back: nothing is left, no Node goes before
// its instance.
func TestKilledWhileANodeWaits(t *testing.T) {
	life := func(t *testing.T, kill int) (calls int) {
		w := newWorld(t)
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		w.calls, w.kill, w.trace = 0, kill, nil
		w.nodes.Away(true)
		w.store.Delete(m.Key)
		w.released(m.Key)
		w.nodes.Away(false)
		w.gone(m.Key)
		calls = w.calls
		w.clean()
		return calls
	}
	var calls int
	synctest.Test(t, func(t *testing.T) { calls = life(t, -1) })
	for at := range calls {
		synctest.Test(t, func(t *testing.T) { life(t, at) })
		if t.Failed() {
			t.Fatalf("killed at half-call %d of %d", at, calls)
		}
	}
}

// R-MA-02 and R-MA-18: a machine that is replaced, or decommissioned, while the workload API is away goes on without it, and the Node of the instance that has ended is
// removed when that answers.
func TestStrayOfAMachineThatStays(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*machine.Machine)
		nodes  int
		is     func(m machine.Machine) bool
	}{
		"replaced": {func(m *machine.Machine) { m.Spec.Config = []byte(`{"image":"a","size":"l"}`) }, 1,
			func(m machine.Machine) bool { return m.Incarnation == 2 && m.Step.Name == machine.StepJoining }},
		"decommissioned": {func(m *machine.Machine) { m.Spec.Decommission = true }, 0,
			func(m machine.Machine) bool { return m.Phase == machine.PhaseRetired }},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				m := w.store.Put(worker("a"))
				first, _ := w.running(m.Key)
				w.nodes.Away(true)
				w.store.Edit(m.Key, c.change)
				w.until(m.Key, name, func(m machine.Machine, _ bool) bool { return c.is(m) })
				if s := w.live(m.Key).Strays; len(s) != 1 || s[0].Token != first.Token || s[0].Name != first.Node.Name {
					t.Errorf("R-MA-02: what is to be removed is %+v", s)
				}
				w.nodes.Away(false)
				w.until(m.Key, "tidy", func(m machine.Machine, _ bool) bool { return len(m.Strays) == 0 })
				w.until(m.Key, name, func(m machine.Machine, _ bool) bool {
					return m.Phase == machine.PhaseRunning || m.Phase == machine.PhaseRetired
				})
				if nodes := w.nodes.All(); len(nodes) != c.nodes {
					t.Errorf("R-MA-02: the Nodes are %+v", nodes)
				}
				w.store.Delete(m.Key)
				w.gone(m.Key)
				w.clean()
			})
		})
	}
}
