// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/provider"
)

// hold is what is on machines, as the workload cluster says, if it answers.
type hold struct{ away *bool }

func (h hold) On(context.Context, []machine.Machine) ([]machine.LocalVolume, []machine.Workload, error) {
	if *h.away {
		return nil, nil, controllertest.ErrAway
	}
	return nil, nil, nil
}

// R-MA-18: with the workload API down, a machine whose disks are kept ends once the node timeout is over, and what was not looked at is written down: what would be lost
// is kept. One whose disks are destroyed waits for it, or for somebody who says not to; and so does one that the gates refuse for what they do know.
func TestGatesWhileTheWorkloadAPIIsDown(t *testing.T) {
	for _, c := range []struct {
		name  string
		disks provider.Mode
		other bool // another machine of the role
		back  bool // the API comes back before the time is over
		ends  bool
	}{
		{name: "disks are kept", disks: provider.Retain, other: true, ends: true},
		{name: "disks are destroyed", disks: provider.Destroy, other: true},
		{name: "the last of its role", disks: provider.Retain},
		{name: "it comes back", disks: provider.Retain, other: true, back: true, ends: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				h := hold{new(bool)}
				w.options.Gates = []controller.Gate{controller.EndGate{Fleet: controller.Fleet{Machines: w.store, Cargo: h}}}
				w.start()
				m := worker("a")
				m.Spec.Deletion.Disks, m.Spec.Deletion.NodeTimeout = c.disks, 20*time.Minute
				w.store.Put(m)
				w.running(m.Key)
				if c.other {
					w.running(w.store.Put(worker("b")).Key)
				}
				away := func(is bool) { *h.away = is; w.nodes.Away(is) }
				away(true)
				w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Decommission = true })
				var overrides []string
				passes := func(d time.Duration) machine.Machine {
					for begun := time.Now(); time.Since(begun) < d; {
						<-time.After(min(max(w.pass(m.Key), time.Second), time.Minute))
						if r := w.live(m.Key).Release; r != nil && len(r.Overrides) > 0 {
							overrides = r.Overrides
						}
					}
					return w.live(m.Key)
				}
				if at := passes(15 * time.Minute); at.Phase == machine.PhaseRetired || at.Release.Gated || !strings.HasPrefix(at.Step.Blocker, "gates: ") {
					t.Fatalf("R-MA-18: before its time it is at %+v, release %+v", at.Step, at.Release)
				}
				if c.back {
					away(false)
				}
				at := passes(2 * time.Hour)
				if (at.Phase == machine.PhaseRetired) != c.ends {
					t.Fatalf("R-MA-18: phase %s at %+v, release %+v", at.Phase, at.Step, at.Release)
				}
				if said := strings.Contains(strings.Join(overrides, "; "), "gates: the workload API does not answer"); said != (c.ends && !c.back) {
					t.Errorf("R-MA-18: overrides %q", overrides)
				}
			})
		})
	}
}
