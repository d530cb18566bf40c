// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/controller/controllertest"
	"github.com/belayproject/belay/rollout/protocol"
)

// R-RO-10: when somebody removes or spoils the mark of a node that is disrupted, nobody knows any more what it was before. It is not compared with itself as it
// is now: the rollout waits for a person, who is told why, and goes on when the node is acknowledged.
func TestLostBaselineIsForAPerson(t *testing.T) {
	spoil := map[string]func(map[string]string){
		"removed": func(a map[string]string) { delete(a, controller.HeldAnnotation) },
		"spoilt":  func(a map[string]string) { a[controller.HeldAnnotation] = "?" },
	}
	for what, spoil := range spoil {
		for at := 3; at < 9; at++ {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2, 1)
				w.c.Behave(name(0), controllertest.Behavior{Bare: true})
				w.want()
				w.steps(at)
				w.c.EditNode(name(0), func(n *controller.Node) { spoil(n.Annotations) })
				w.untilPhase(rollout.Frozen)
				if _, shown, _ := w.c.Rollout(uid); !strings.Contains(shown.Message, controller.HeldAnnotation) || w.c.Runs("v2") != 1 {
					t.Errorf("R-RO-10: %s at step %d: it shows %q, %d nodes run v2, want the annotation named, and one node", what, at, shown.Message, w.c.Runs("v2"))
				}
				w.ask("accept-1", rollout.Accept)
				w.ends("accept-1")
				w.ask("acknowledge-1", rollout.Acknowledge, name(0))
				w.untilPhase(rollout.Completed)
				w.steps(3)
				w.sound()
				w.tidy()
				w.once(2, "v2")
			})
		}
	}
}

// ends waits until a request was handled.
func (w *world) ends(request string) {
	w.t.Helper()
	w.until(request, func() bool { r, _, _ := w.c.Rollout(uid); return r.Progress.Handled == request })
}

// A mark that is removed before the node is disrupted is made anew, and so it is on a node that is not disrupted by its revision until it begins.
func TestBaselineIsTakenAnewBefore(t *testing.T) {
	for _, class := range []rollout.Class{rollout.Intrusive, rollout.NonIntrusive} {
		for _, phase := range []protocol.Phase{"", protocol.PhaseCommitted} {
			if class == rollout.Intrusive && phase != "" {
				continue // it drains
			}
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2, 1)
				w.policy.Target.Class = class
				w.want()
				w.until("a node is on its way", func() bool {
					sh, _ := w.c.Shadow(name(0))
					return len(w.c.Ledger().Slots) == 1 && (phase == "" || sh.Report.Phase == phase)
				})
				w.c.EditNode(name(0), func(n *controller.Node) { delete(n.Annotations, controller.HeldAnnotation) })
				w.untilPhase(rollout.Completed)
				w.steps(3)
				w.sound()
				w.tidy()
				w.once(2, "v2")
			})
		}
	}
}

// R-RO-10: a ledger that was lost, and with it whose slot it was, does not make a node the measure of itself either: its mark still tells.
func TestBaselineOutlivesTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		w.c = controllertest.New(controllertest.Options{Lossy: true})
		w.client = w.c.Connect()
		w.o = w.client.Options()
		w.start()
		w.add(0)
		w.c.Behave(name(0), controllertest.Behavior{Bare: true})
		w.want()
		w.until("the node applies", func() bool { sh, _ := w.c.Shadow(name(0)); return sh.Report.Phase == protocol.PhaseApplying })
		w.c.RemoveRollout(uid)
		w.c.LoseLedger()
		w.steps(100)
		if slots := w.c.Ledger().Slots; len(slots) != 1 {
			t.Errorf("R-RO-10: the slots are %+v, want that of the node whose pods are not back", slots)
		}
		w.c.Behave(name(0), controllertest.Behavior{})
		w.steps(10)
		w.sound()
		w.tidy()
	})
}
