// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/controller/controllertest"
	"github.com/belayproject/belay/rollout/protocol"
)

// Two rollouts of a domain keep each other's caps, and both come to their end.
func TestRolloutsShareADomain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 6, 2)
		w.want()
		w.c.PutRollout("infra", w.infra(5))
		w.until("both are completed", func() bool {
			_, second, _ := w.c.Rollout("rollout-2")
			return w.phase() == rollout.Completed && second.Phase == rollout.Completed
		})
		w.steps(3)
		w.sound()
		w.tidy()
		w.once(6, "v2")
	})
}

// infra adds 5 nodes with the label role=infra, and is a rollout for them with a cap of its own.
func (w *world) infra(most int) rollout.Policy {
	for i := range 5 {
		w.c.AddNode(name(50+i), map[string]string{"role": "infra"}, protocol.Revision{Name: "i1", Digest: "sha256:i1"})
	}
	return rollout.Policy{
		UID: "rollout-2", Target: revision("i2"), Completed: revision("i1"), Detectors: []rollout.Detector{},
		Groups: []rollout.Group{{Name: "infra", Selector: labels.SelectorFromSet(labels.Set{"role": "infra"})}},
		Caps:   []rollout.Cap{{Scope: rollout.Total, Max: number(most)}},
	}
}

// A rollout whose policy can't be followed says so. As its caps are not known, nothing is admitted beside its slots; without slots it stops nobody.
func TestRefusedRolloutStopsOthersWhileItHasSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 6, 2)
		w.want()
		w.until("two are in flight", func() bool { return len(w.c.Ledger().Slots) == 2 })
		w.c.EditRollout(uid, func(r *controller.Rollout) {
			r.Invalid = errors.New(`spec.groups[0].selector: "a=b=c" is not a selector`)
		})
		w.c.PutRollout("infra", w.infra(5))
		w.steps(30)
		if w.c.Runs("i2") != 0 {
			t.Errorf("%d nodes were begun beside a rollout whose caps are not known", w.c.Runs("i2"))
		}
		if _, shown, _ := w.c.Rollout(uid); shown.Reason != controller.ReasonInvalid || shown.Message != `spec.groups[0].selector: "a=b=c" is not a selector` {
			t.Errorf("the rollout shows %+v", shown)
		}
		w.c.EditRollout(uid, func(r *controller.Rollout) { r.Invalid = nil })
		w.until("both are completed", func() bool {
			_, second, _ := w.c.Rollout("rollout-2")
			return w.phase() == rollout.Completed && second.Phase == rollout.Completed
		})
		w.sound()
	})
}

// A rollout that is deleted, in any state, ends its slots and gives its nodes back before it goes. So do the slots of one that somebody has removed
// with its finalizer.
func TestDeletedRolloutEndsFirst(t *testing.T) {
	for at := 1; at < 20; at++ {
		for _, byHand := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) { deletedAt(t, at, byHand) })
		}
	}
}

func deletedAt(t *testing.T, at int, byHand bool) {
	w := newWorld(t, 4, 2)
	w.want()
	w.steps(at)
	if at%2 == 0 {
		w.ask("pause-1", rollout.Pause)
		w.pass()
	}
	if byHand {
		w.c.RemoveRollout(uid)
	} else {
		w.c.EditRollout(uid, func(r *controller.Rollout) {
			if r.Deleting = true; at%3 == 0 { // its revision went with it
				r.Invalid = errors.New(`spec.revision.name: "v2", want the name of a Revision that there is`)
			}
		})
	}
	w.until("it is gone with its slots", func() bool {
		_, _, there := w.c.Rollout(uid)
		slots := len(w.c.Ledger().Slots)
		if !there && !byHand && slots > 0 {
			t.Errorf("deleted at step %d: the rollout is gone, and has %d slots", at, slots)
		}
		return !there && slots == 0
	})
	w.steps(5)
	w.sound()
	w.tidy()
	if l := w.c.Ledger(); len(l.Closures) > 0 && !byHand {
		t.Errorf("deleted at step %d: it has left %+v in the ledger", at, l.Closures)
	}
	for i := range 4 {
		if _, there := w.c.Shadow(name(i)); there {
			t.Errorf("deleted at step %d: node %q, which nobody selects, has a shadow", at, name(i))
		}
	}
}

// A ledger that is deleted by hand, at any time, costs capacity: what it had admitted is found again on the nodes.
func TestLedgerDeletedByHand(t *testing.T) {
	for at := 1; at < 20; at++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 6, 2)
			w.lossy(6, 2)
			w.steps(at)
			before := w.c.Ledger()
			w.c.LoseLedger()
			w.pass()
			w.pass()
			for _, s := range before.Slots {
				if sh, _ := w.c.Shadow(s.Node); !sh.Report.Phase.AtRest() && w.c.Ledger().Slot(s.UID) == nil && w.c.Ledger().ClosedFor(uid) == nil {
					t.Errorf("ledger lost at step %d: node %q is %s, and has no slot in the open ledger", at, s.Node, sh.Report.Phase)
				}
			}
			w.untilPhase(rollout.Completed)
			w.steps(3)
			w.sound()
			w.tidy()
			w.once(6, "v2")
		})
	}
}

// lossy makes the cluster one in which a hand may delete things.
func (w *world) lossy(n, at int) {
	w.c = controllertest.New(controllertest.Options{Caps: []protocol.Cap{{Max: at}}, Lossy: true})
	for i := range n {
		w.add(i)
	}
	w.client = w.c.Connect()
	w.o = w.client.Options()
	w.start()
	w.want()
}

// A shadow that is deleted by hand, at any time, is made anew, and its agent says what it did.
func TestShadowDeletedByHand(t *testing.T) {
	for at := 2; at < 20; at++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 4, 2)
			w.lossy(4, 2)
			w.steps(at)
			epoch := w.c.Ledger().Epoch
			w.c.LoseShadow(name(0))
			w.pass()
			if sh, _ := w.c.Shadow(name(0)); sh.Orders.Revoked < epoch {
				t.Errorf("shadow lost at step %d: the new one revokes attempts up to %d, want %d, all that there were", at, sh.Orders.Revoked, epoch)
			}
			w.untilPhase(rollout.Completed)
			w.steps(3)
			w.sound()
			w.tidy()
			if w.c.Runs("v2") != 4 {
				t.Errorf("shadow lost at step %d: %d of 4 nodes run the revision", at, w.c.Runs("v2"))
			}
		})
	}
}

// R-RO-13: after 1,000 updates there is as much as before: a shadow for each node, an empty ledger, no mark.
func TestNothingIsLeftAfterManyUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes, revisions = 20, 50
		w := newWorld(t, nodes, nodes)
		w.want()
		w.untilPhase(rollout.Completed)
		for i := range revisions - 1 {
			w.policy.Target, w.policy.Completed = revision(fmt.Sprintf("r%d", i)), w.policy.Target
			w.want()
			w.until("the next revision", func() bool { return w.c.Runs(w.policy.Target.Name) == nodes && w.phase() == rollout.Completed })
		}
		w.steps(5)
		w.sound()
		w.tidy()
		r, _, _ := w.c.Rollout(uid)
		if l := w.c.Ledger(); l.Epoch != nodes*revisions || len(l.Closures) != 0 || len(r.Progress.Nodes) != 0 || w.c.Writes()["shadow"] != nodes {
			t.Errorf("R-RO-13: %d updates, %d closures, %d nodes remembered, %d shadows made; want %d updates, nothing left, and %d shadows",
				l.Epoch, len(l.Closures), len(r.Progress.Nodes), w.c.Writes()["shadow"], nodes*revisions, nodes)
		}
	})
}
