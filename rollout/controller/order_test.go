// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/protocol"
)

// A slot is freed after its node was given back: a node that can't be given back keeps it, and nobody else has its turn.
func TestSlotIsFreedAfterItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		stuck := true
		w.o.Drainer, w.o.Health = stubborn{w.o.Drainer, &stuck}, nil // else the slot waits for the node's work
		w.start()
		w.want()
		w.until("the first node is done", func() bool {
			sh, _ := w.c.Shadow(name(0))
			return sh.Report.Phase == protocol.PhaseDone
		})
		w.steps(20)
		if n := w.c.Node(name(0)); !n.Unschedulable || w.c.Ledger().Slot(n.UID) == nil || w.c.Runs("v2") != 1 {
			t.Errorf("R-RO-01: a node that is cordoned (%t) has the slot %v, and %d nodes run the revision, want it to keep its slot, alone",
				n.Unschedulable, w.c.Ledger().Slot(n.UID), w.c.Runs("v2"))
		}
		stuck = false
		w.untilPhase(rollout.Completed)
		w.steps(3)
		w.sound()
		w.tidy()
		w.once(2, "v2")
	})
}

// A stubborn drainer gives nothing back.
type stubborn struct {
	controller.Drainer
	stuck *bool
}

func (d stubborn) Release(ctx context.Context, node, uid string, attempt int64) (bool, error) {
	if *d.stuck {
		return false, nil
	}
	return d.Drainer.Release(ctx, node, uid, attempt)
}

// What was decided on a ledger that has changed meanwhile is not carried out: here somebody closes the ledger just before an admission is stored.
func TestOvertakenAdmissionIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		store := w.o.Ledger
		change := func(f func(protocol.Ledger) protocol.Ledger) {
			if _, err := rollout.Update(t.Context(), store, false, func(l protocol.Ledger) (protocol.Ledger, error) { return f(l), nil }); err != nil {
				t.Error(err)
			}
		}
		w.o.Ledger = &overtaken{LedgerStore: store, by: func() {
			change(func(l protocol.Ledger) protocol.Ledger {
				return l.Close(protocol.Closure{Request: "by-hand", Reason: "a test"})
			})
		}}
		w.start()
		w.want()
		w.steps(5)
		for i := range 2 {
			if sh, there := w.c.Shadow(name(i)); !there || sh.Orders.Grant > 0 {
				t.Errorf("R-RO-02: node %d was granted attempt %d, and the ledger was closed before", i, sh.Orders.Grant)
			}
		}
		change(func(l protocol.Ledger) protocol.Ledger { return l.Open("", "by-hand") })
		w.untilPhase(rollout.Completed)
		w.sound()
		w.once(2, "v2")
	})
}

// An overtaken store has somebody else write before the first admission.
type overtaken struct {
	rollout.LedgerStore
	by func()
}

func (s *overtaken) Store(ctx context.Context, l protocol.Ledger, version string) (string, error) {
	if s.by != nil && l.Epoch > 0 {
		by := s.by
		s.by = nil
		by()
	}
	return s.LedgerStore.Store(ctx, l, version)
}

// A node that is found empty goes on in the same pass: nothing else need happen for that.
func TestEmptyNodeGoesOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 1)
		d := &seen{Drainer: w.o.Drainer}
		w.o.Drainer = d
		w.start()
		w.want()
		w.until("a node is empty", func() bool { return d.empty != "" })
		if sh, _ := w.c.Shadow(d.empty); sh.Orders.Proceed == 0 {
			t.Errorf("node %q is empty, and its agent was not told to go on in the same pass: %+v", d.empty, sh.Orders)
		}
	})
}

// A seen drainer remembers which node was found empty.
type seen struct {
	controller.Drainer
	empty string
}

func (d *seen) Drain(ctx context.Context, node, uid string, attempt int64, force bool) (empty bool, blocked string, after time.Duration, err error) {
	if empty, blocked, after, err = d.Drainer.Drain(ctx, node, uid, attempt, force); empty {
		d.empty = node
	}
	return empty, blocked, after, err
}

// Who aborts in the middle of a pass does not wait for its end: no node is granted after the one at hand (R-RO-19).
func TestAbortDoesNotWaitForThePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 10, 10)
		w.want()
		grants := 0
		w.client.OnWrite = func(what string, done bool) {
			node, ordered := strings.CutPrefix(what, "order ")
			if sh, _ := w.c.Shadow(node); !done || !ordered || sh.Orders.Grant <= sh.Orders.Revoked {
				return
			}
			if grants++; grants == 3 {
				w.ask("stop", rollout.Abort)
			}
		}
		w.untilPhase(rollout.Aborted)
		w.sound()
		w.tidy()
		if grants != 3 {
			t.Errorf("%d nodes were granted, want the 3 that were granted when the abort was asked for", grants)
		}
	})
}
