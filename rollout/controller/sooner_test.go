// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/controller/controllertest"
	"github.com/belayproject/belay/rollout/protocol"
)

// fiveInFlight has five of ten nodes in slots. The first one is verifying what it runs now, and the agents of the others have just committed.
func fiveInFlight(t *testing.T) *world {
	w := newWorld(t, 10, 5)
	silent := controllertest.Behavior{Silent: true}
	phase := func() protocol.Phase {
		sh, _ := w.c.Shadow(name(0))
		return sh.Report.Phase
	}
	w.want()
	w.untilKnown(10)
	w.behave(1, 10, silent)
	w.until("the first runs it", func() bool { return phase() == protocol.PhaseVerifying })
	w.c.Behave(name(0), silent)
	w.pass() // it is opened
	w.behave(1, 10, controllertest.Behavior{})
	w.c.Agents()
	w.behave(1, 10, silent)
	w.c.Behave(name(0), controllertest.Behavior{})
	if slots := len(w.c.Ledger().Slots); slots != 5 || w.cordoned() != 0 {
		t.Fatalf("%d slots, %d nodes are cordoned, want 5, and none", slots, w.cordoned())
	}
	return w
}

func (w *world) cordoned() (n int) {
	for i := range 10 {
		if w.c.Node(name(i)).Unschedulable {
			n++
		}
	}
	return n
}

// What has come free during a pass is given to the next node before the pass goes on to nodes that have their slots (R-RO-27).
func TestPlaceThatComesFreeGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fiveInFlight(t)
		before, cordoned := w.c.Ledger().Epoch, -1
		w.client.OnWrite = func(what string, done bool) {
			node, ordered := strings.CutPrefix(what, "order ")
			sh, _ := w.c.Shadow(node)
			switch {
			case done && ordered && sh.Orders.Grant > before:
				cordoned = w.cordoned()
			case done && w.cordoned() == 1:
				w.c.Agents() // the first node has verified what it runs
			}
		}
		w.pass()
		if cordoned != 1 || w.cordoned() != 4 {
			t.Errorf("the next node was granted when %d nodes were cordoned, and %d are after the pass; want 1 and 4", cordoned, w.cordoned())
		}
		w.sound()
	})
}

// However many attempts end, each pass writes something, and the fourth in a row goes to its end; the caps hold (R-RO-11).
func TestPassesAreCutShortThreeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fiveInFlight(t)
		tries := []int{} // the writes of each
		w.o.Shadows = &ending{watched{w.o.Shadows, func() { tries = append(tries, 0) }}}
		w.client.OnWrite = func(_ string, done bool) {
			if done {
				tries[len(tries)-1]++
			}
		}
		w.start()
		w.pass()
		if len(tries) != 4 || slices.Min(tries) == 0 {
			t.Errorf("got passes with %v writes, want three that were cut short after one at least, and one more", tries)
		}
		if n := w.cordoned(); n != 4 {
			t.Errorf("%d nodes are cordoned, want the 4 of the pass", n)
		}
		w.behave(0, 10, controllertest.Behavior{})
		w.untilPhase(rollout.Completed)
		w.steps(3)
		w.sound()
		w.tidy()
		w.once(10, "v2")
	})
}

// ending are shadows of which an attempt ends all the time.
type ending struct{ watched }

func (*ending) Ended(slots []protocol.Slot) bool { return len(slots) > 0 }

// A node that can't be given back has ended, and cuts no pass short: its end was seen (R-RO-01).
func TestStuckEndCutsNothingShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 6, 3)
		lists, stuck := 0, true
		w.o.Shadows = &watched{w.o.Shadows, func() { lists++ }}
		w.o.Drainer, w.o.Health = stubborn{w.o.Drainer, &stuck}, nil
		w.start()
		w.want()
		w.until("three nodes are done", func() bool { return w.c.Runs("v2") == 3 })
		w.steps(10)
		w.client.OnWrite = func(string, bool) { w.c.Agents() }
		lists = 0
		w.c.EditNode(name(5), func(n *controller.Node) { n.Annotations[controller.HeldAnnotation] = "{}" }) // something to write
		w.pass()
		if lists != 1 {
			t.Errorf("the shadows were listed %d times, want once", lists)
		}
	})
}

// watched are shadows that tell when they are listed.
type watched struct {
	controller.Shadows
	listed func()
}

func (s *watched) List(ctx context.Context) ([]controller.Shadow, error) {
	s.listed()
	return s.Shadows.List(ctx)
}
