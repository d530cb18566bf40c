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

// granted has eight of ten nodes in slots: the agents of the first three have committed, and those of the others have not answered their grants.
func granted(t *testing.T) *world {
	w := newWorld(t, 10, 8)
	w.want()
	w.untilKnown(10)
	silent := controllertest.Behavior{Silent: true}
	w.behave(0, 10, silent)
	w.pass()
	w.pass()
	w.behave(0, 3, controllertest.Behavior{})
	w.c.Agents()
	w.behave(0, 3, silent)
	for i := range 3 {
		if sh, _ := w.c.Shadow(name(i)); sh.Report.Phase != protocol.PhaseCommitted {
			t.Fatalf("%s is %s, want it committed", name(i), sh.Report.Phase)
		}
	}
	if slots := len(w.c.Ledger().Slots); slots != 8 {
		t.Fatalf("%d slots, want 8", slots)
	}
	return w
}

// wakes lets the agent of a node take steps, just before its grant is revoked for the first time.
func (w *world) wakes(node string, steps int, then func()) func(what string, done bool) {
	return func(what string, done bool) {
		if done {
			then()
		}
		if done || what != "order "+node || steps == 0 {
			return
		}
		w.c.Behave(node, controllertest.Behavior{})
		for ; steps > 0; steps-- {
			w.c.Agents()
		}
		w.c.Behave(node, controllertest.Behavior{Silent: true})
	}
}

// Who aborts is answered before the nodes that have begun are looked after, in the same pass, also where an agent commits while its grant is revoked: the
// status says that no node is begun any more when that is so (R-RO-19, R-RO-28).
func TestAbortIsAnsweredFirst(t *testing.T) {
	for name, first := range map[string]string{"nobody is first": "", "an agent is first": name(3)} {
		synctest.Test(t, func(t *testing.T) {
			w := granted(t)
			w.ask("stop", rollout.Abort)
			var before, after []string
			shown := func() bool { _, shown, _ := w.c.Rollout(uid); return shown.Acknowledged }
			tell := w.wakes(first, 1, func() {})
			w.client.OnWrite = func(what string, done bool) {
				if tell(what, done); !done {
					return
				}
				if shown() {
					after = append(after, what)
				} else {
					before = append(before, what)
				}
			}
			w.pass()
			if !shown() {
				t.Fatalf("%s: not acknowledged after a pass that wrote %q", name, before)
			}
			for _, what := range before {
				node, ordered := strings.CutPrefix(what, "order ")
				sh, _ := w.c.Shadow(node)
				if what != "ledger " && !strings.HasPrefix(what, "progress ") && (!ordered || sh.Orders.Revoked == 0) {
					t.Errorf("%s: %q was written before the abort was acknowledged", name, what)
				}
			}
			if !slices.ContainsFunc(after, func(what string) bool { return strings.HasPrefix(what, "order ") }) {
				t.Errorf("%s: after it, %q was written, want orders to the nodes that had committed", name, after)
			}
			w.goesOn()
		})
	}
}

// goesOn lets all agents go on until the abort is over.
func (w *world) goesOn() {
	w.t.Helper()
	w.client.OnWrite = nil
	w.behave(0, 10, controllertest.Behavior{})
	w.untilPhase(rollout.Aborted)
	w.steps(3)
	w.sound()
	w.tidy()
}

// An agent that was through with its attempt when that was revoked is left to the next pass, which gives its node back first: no slot is freed before that
// (R-RO-01).
func TestEndDuringARevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := granted(t)
		w.ask("stop", rollout.Abort)
		shadows := w.o.Shadows
		w.o.Shadows, w.o.Health = through{shadows, name(3)}, nil // else the slot waits for the work of the node
		w.start()
		w.pass()
		if w.c.Ledger().Slot(w.c.Node(name(3)).UID) == nil {
			t.Errorf("the slot of %s was freed in the pass that found its end", name(3))
		}
		w.o.Shadows = shadows
		w.start()
		w.goesOn()
	})
}

// through are shadows of which one has just ended its attempt, which the list does not show yet.
type through struct {
	controller.Shadows
	node string
}

func (s through) Order(ctx context.Context, read controller.Shadow, o protocol.Orders) (controller.Shadow, error) {
	if read.Node == s.node {
		return controller.Shadow{}, rollout.ErrConflict
	}
	return s.Shadows.Order(ctx, read, o)
}

func (s through) Get(ctx context.Context, node string) (controller.Shadow, error) {
	sh, err := s.Shadows.Get(ctx, node)
	if node == s.node {
		sh.Report.Attempt, sh.Report.Phase, sh.Report.Revision = sh.Orders.Grant, protocol.PhaseDone, sh.Orders.Revision
		sh.Runs = protocol.Revision{Name: "v2", Digest: "sha256:v2"}
	}
	return sh, err
}
