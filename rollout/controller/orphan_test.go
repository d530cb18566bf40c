// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/rollout/controller/controllertest"
	"github.com/belayproject/belay/rollout/protocol"
)

// The slot of a rollout that is gone, whose node does not come to its end, is suspect when its deadline has passed since that was seen first; it is freed when
// the node has come to its end.
func TestSlotOfAGoneRolloutBecomesSuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		w.want()
		w.until("a node applies", func() bool {
			sh, _ := w.c.Shadow(name(0))
			return sh.Report.Phase == protocol.PhaseApplying
		})
		w.c.RemoveRollout(uid)
		w.c.Behave(name(0), controllertest.Behavior{Silent: true})
		w.steps(60)
		if slots := w.c.Ledger().Slots; len(slots) != 1 || slots[0].State != "" {
			t.Errorf("after 10 minutes the slots are %+v, want it as it was: it may take 30", slots)
		}
		w.steps(200)
		if slots := w.c.Ledger().Slots; len(slots) != 1 || slots[0].State != protocol.SlotSuspect {
			t.Errorf("after 43 minutes the slots are %+v, want it suspect", slots)
		}
		w.c.Behave(name(0), controllertest.Behavior{})
		w.steps(20)
		w.sound()
		w.tidy()
	})
}
