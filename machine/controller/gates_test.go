// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/controller/controllertest"
)

// door is a gate that somebody opens and shuts.
type door struct {
	shut  string
	asked int
}

func (d *door) Check(context.Context, machine.Machine) (string, error) {
	d.asked++
	return d.shut, nil
}

// R-MA-25: a drain takes hours, and meanwhile another member becomes unhealthy. The gates are asked again just before the first step that can't be undone: the
// machine waits there and says why, the end can still be taken back, and it goes on when the gates agree.
func TestGatesAreAskedAgainAfterTheDrain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		d := &door{}
		w.options.Gates = []controller.Gate{d}
		w.start()
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		w.nodes.Stick("a PodDisruptionBudget")
		decommission := func(on bool) { w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Decommission = on }) }
		waits := func(m machine.Machine, _ bool) bool { return strings.HasPrefix(m.Step.Blocker, "gates: ") }
		decommission(true)
		w.until(m.Key, "draining", func(m machine.Machine, _ bool) bool { return m.Step.Name == machine.StepDraining })
		if d.asked != 1 {
			t.Errorf("the gates were asked %d times before the drain", d.asked)
		}
		d.shut = "member c1 is unhealthy"
		<-time.After(3 * time.Hour)
		w.nodes.Stick("")
		w.until(m.Key, "held by the gates", waits)
		if at := w.live(m.Key); at.Release.Begun || !at.Release.Drained || slices.Contains(w.trace, "Stop") {
			t.Errorf("R-MA-25: the gates are shut, and the release is %+v", at.Release)
		}
		decommission(false)
		if at, _ := w.running(m.Key); at.Incarnation != 1 {
			t.Errorf("it was taken back, and has incarnation %d", at.Incarnation)
		}
		d.shut = ""
		decommission(true)
		w.until(m.Key, "retired", func(m machine.Machine, _ bool) bool { return m.Phase == machine.PhaseRetired })
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.clean()
	})
}

// R-MA-25: who does not want to wait for the gates says so, and the machine's status keeps that.
func TestGatesAreOverridden(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		d := &door{shut: "no"}
		w.options.Gates = []controller.Gate{d}
		w.start()
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		w.store.Edit(m.Key, func(m *machine.Machine) {
			m.Spec.Decommission, m.Annotations = true, map[string]string{machine.OverrideAnnotation: "gates"}
		})
		var kept []string
		w.until(m.Key, "retired", func(m machine.Machine, _ bool) bool {
			if m.Release != nil {
				kept = m.Release.Overrides
			}
			return m.Phase == machine.PhaseRetired
		})
		if d.asked != 0 || len(kept) != 1 || !strings.HasPrefix(kept[0], "gates: ") {
			t.Errorf("asked %d times, overrides %q", d.asked, kept)
		}
	})
}

// slowDrain does something while it drains, and has drained then.
type slowDrain struct {
	*controllertest.Cluster
	meanwhile func()
}

func (s slowDrain) Drain(ctx context.Context, node, uid string, attempt int64, force bool) (bool, string, time.Duration, error) {
	s.meanwhile()
	return s.Cluster.Drain(ctx, node, uid, attempt, force)
}

// R-MA-25: what the gates have said counts for nothing once something else was done, also within one pass.
func TestGatesAreAskedLast(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		d := &door{}
		w.options.Gates = []controller.Gate{d}
		w.options.Drainer = slowDrain{w.nodes, func() { d.shut = "it has changed meanwhile" }}
		w.start()
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		w.store.Delete(m.Key)
		for range 20 {
			w.pass(m.Key)
			<-time.After(10 * time.Second)
		}
		if at := w.live(m.Key); at.Release.Begun || at.Step.Blocker != "gates: it has changed meanwhile" {
			t.Errorf("R-MA-25: the release is %+v, blocked by %q", at.Release, at.Step.Blocker)
		}
	})
}
