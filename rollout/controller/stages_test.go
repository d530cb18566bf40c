// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"maps"
	"os"
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/rollout"
)

// staged has 50 nodes in three stages.
func staged(t *testing.T) *world {
	w := newWorld(t, 50, 10)
	w.policy.Stages = []rollout.Stage{
		{Name: "canary", Size: size(1), Soak: 2 * tick},
		{Name: "some", Size: size(11), Caps: []rollout.Cap{{Scope: rollout.ByZone, Max: number(2)}}},
		{Name: "all"},
	}
	w.want()
	return w
}

// A fleet goes through its stages, within its caps; then an idle pass writes nothing.
func TestFleetGoesThroughStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := staged(t)
		w.untilPhase(rollout.Completed)
		w.steps(3)
		w.sound()
		w.tidy()
		w.once(50, "v2")
		before := w.c.Writes()
		w.steps(20)
		if after := w.c.Writes(); !maps.Equal(before, after) {
			t.Errorf("idle passes have written: before %v, after %v", before, after)
		}
		t.Logf("writes for 50 nodes: %v", before)
	})
}

// R-RO-01: the controller is killed before and after every write of a run of 50 nodes; the end is the same, and so is the number of attempts.
func TestKilledAtEveryWrite(t *testing.T) {
	writes := 0
	synctest.Test(t, func(t *testing.T) {
		w := staged(t)
		w.client.OnWrite = func(_ string, done bool) {
			if done {
				writes++
			}
		}
		w.untilPhase(rollout.Completed)
	})
	stride := 23
	if os.Getenv("BELAY_KILLS") == "all" {
		stride = 1
	}
	for at := 1; at <= writes; at += stride {
		for _, after := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) { killedAt(t, at, after) })
		}
		if t.Failed() {
			t.Fatalf("killed at write %d of %d", at, writes)
		}
	}
}

func killedAt(t *testing.T, at int, after bool) {
	w := staged(t)
	w.client.OnWrite = killer(at, after)
	w.untilPhase(rollout.Completed)
	w.steps(3)
	w.sound()
	w.tidy()
	w.once(50, "v2")
	if l := w.c.Ledger(); l.Epoch != 50 {
		t.Errorf("R-RO-01: %d attempts, want 50: one for each node", l.Epoch)
	}
}
