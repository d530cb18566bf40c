// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/rollout"
)

// R-CS-93: a rollout that is paused stays so over restarts of its controller, at whatever moment it was paused: the ledger, what the nodes run and
// how often they were touched stay as they are, until somebody resumes it; then it goes on to its end, and no node is brought there twice.
func TestPausedOverRestarts(t *testing.T) {
	for at := 1; at <= 13; at += 3 {
		synctest.Test(t, func(t *testing.T) { pausedAt(t, at) })
	}
}

func pausedAt(t *testing.T, at int) {
	w := newWorld(t, 6, 2)
	w.want()
	w.steps(at)
	if w.phase() == rollout.Completed {
		t.Fatalf("completed after %d steps, before the pause", at)
	}
	w.ask("pause-1", rollout.Pause)
	w.until("it is paused and nothing is under way", func() bool { return w.phase() == rollout.Paused && len(w.c.Ledger().Slots) == 0 })
	w.steps(3)
	ledger, updates, runs := w.c.Ledger(), w.c.Updates(), w.c.Runs("v2")
	for range 20 {
		w.start()
		w.steps(2)
		if got := w.phase(); got != rollout.Paused {
			t.Fatalf("R-CS-93: paused at step %d, it is %s after a restart", at, got)
		}
	}
	if now := w.c.Ledger(); !reflect.DeepEqual(now, ledger) || !reflect.DeepEqual(w.c.Updates(), updates) || w.c.Runs("v2") != runs {
		t.Errorf("R-CS-93: paused at step %d, and after restarts: ledger %+v, was %+v; updates %v, were %v", at, now, ledger, w.c.Updates(), updates)
	}
	w.ask("resume-1", rollout.Resume)
	w.untilPhase(rollout.Completed)
	w.steps(3)
	w.sound()
	w.tidy()
	w.once(6, "v2")
}
