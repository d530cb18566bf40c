// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/controller/controllertest"
	"github.com/belayproject/belay/rollout/protocol"
)

// broken is a node on which v2 works no better than what was there before.
func broken() controllertest.Behavior {
	return controllertest.Behavior{Fails: func(revision string) protocol.Event {
		if revision == "v2" {
			return protocol.EventBroke
		}
		return ""
	}}
}

// What "A node that is past help" of docs/upgrading.md says: a Rollout that is deleted waits for a broken node as long as nobody has given that up, and then its
// shadow stays until somebody takes its finalizer away. After that the node is nobody's.
func TestDeletedRolloutWaitsForABrokenNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		w.policy.Detectors = []rollout.Detector{rollout.Failures{At: number(1)}}
		w.behave(0, 2, broken())
		w.want()
		w.untilPhase(rollout.Frozen)
		w.c.EditRollout(uid, func(r *controller.Rollout) { r.Deleting = true })
		w.steps(300)
		slots := w.c.Ledger().Slots
		if _, _, there := w.c.Rollout(uid); !there || len(slots) != 1 || slots[0].State == "" {
			t.Fatalf("with a broken node: the rollout is there: %t, with the slots %+v, want it, and one that is marked", there, slots)
		}
		w.sound() // from here on it is not: what is given up disrupts a node outside the caps
		gave := slots[0].Node
		w.c.EditRollout(uid, func(r *controller.Rollout) {
			r.Policy.Verb = rollout.Verb{Request: "acknowledge-1", Do: rollout.Acknowledge, Node: gave}
		})
		w.until("it is gone", func() bool { _, _, there := w.c.Rollout(uid); return !there })
		w.c.DeleteShadow(gave)
		w.steps(300)
		for i := range 2 {
			if _, there := w.c.Shadow(name(i)); there != (name(i) == gave) {
				t.Errorf("node %q was given up: its shadow is there: %t; that of node %q: %t", gave, there, name(i), there)
			}
		}
		w.c.LoseShadow(gave)
		w.steps(5)
		w.tidy()
		if len(w.errs) > 0 {
			t.Errorf("passes end with %v", w.errs)
		}
	})
}
