// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// R-MA-29: a controller that was frozen just before it gives a slot back, and wakes when another one has taken a slot for the next change of the same machine, does not
// give that back.
func TestLateFreeKeepsTheNextSlot(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		other, err := controller.New(w.options)
		if err != nil {
			t.Fatal(err)
		}
		goesOn := func(what string, is func(at machine.Machine) bool) {
			t.Helper()
			for begun := time.Now(); !is(w.live(m.Key)); <-time.After(time.Second) {
				if _, err := other.Reconcile(t.Context(), m.Key); err != nil || time.Since(begun) > time.Hour {
					t.Fatalf("the other controller, until %s: %v, %+v", what, err, w.live(m.Key).Step)
				}
			}
		}
		woken := false
		w.at = func(int) {
			if woken || w.trace[len(w.trace)-1] != "FreeSlot" {
				return
			}
			woken = true
			goesOn("the update is over", func(at machine.Machine) bool { return at.Update == nil })
			w.nodes.Stick("a PodDisruptionBudget")
			w.image(m.Key, "c")
			goesOn("the next one drains", func(at machine.Machine) bool { return at.Update != nil && at.Update.Slot })
		}
		w.image(m.Key, "b")
		for !woken {
			<-time.After(min(max(w.pass(m.Key), time.Second), time.Minute))
		}
		if held, is := w.budget.held[m.UID], w.live(m.Key).Update; is == nil || held == "" || held != is.Loan {
			t.Errorf("R-MA-29: the slot of the next change is %q, and the update is %+v", held, is)
		}
		w.nodes.Stick("")
		w.running(m.Key)
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.clean()
	})
}

// R-MA-29: a controller that has just started, whose cache is behind, does not give back the slot of a change that it does not see yet.
func TestStaleCacheKeepsTheSlot(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		w.store.Freeze()
		w.nodes.Stick("a PodDisruptionBudget")
		w.image(m.Key, "b")
		m = w.live(m.Key)
		m.Update = &machine.Update{Digest: m.Spec.Digest(), Slot: true, Loan: "1-7"} // by another one
		if _, err := w.store.PutStatus(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		w.budget.held[m.UID] = "1-7"
		w.start()
		for range 3 {
			w.pass(m.Key)
			<-time.After(time.Second)
		}
		if held := w.budget.held[m.UID]; held != "1-7" {
			t.Errorf("R-MA-29: the slot is %q", held)
		}
	})
}
