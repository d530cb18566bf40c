// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// R-MA-29: a slot that somebody else has borrowed is his until he gives it back, whatever becomes of rollouts, and the caps of others bind them.
func TestLentSlotsAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, 2)
		caps := []protocol.Cap{{Max: 1, From: "others"}}
		slots := &rollout.Slots{Ledger: w.o.Ledger, Caps: caps}
		w.o.Caps = caps
		w.start()
		w.want()
		if done, why, err := slots.Take(t.Context(), "fleet/m", "uid-m", "1", "", ""); !done || err != nil {
			t.Fatal(why, err)
		}
		loan := func() bool {
			l, _, err := w.o.Ledger.Load(t.Context())
			return err == nil && len(l.Slots) == 1 && l.Loan("uid-m") != nil
		}
		w.steps(100)
		if !loan() || w.phase() == rollout.Completed {
			t.Errorf("R-MA-29: a loan: %t, and the rollout is %s beside it", loan(), w.phase())
		}
		slots.Caps, w.o.Caps = nil, nil
		w.start()
		w.untilPhase(rollout.Completed)
		if w.steps(20); !loan() {
			t.Error("R-MA-29: the loan is gone with the rollout")
		}
		if err := slots.Free(t.Context(), "fleet/m", "uid-m", "1"); err != nil || loan() {
			t.Errorf("R-MA-29: given back: %v, there: %t", err, loan())
		}
	})
}
