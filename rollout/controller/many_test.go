// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/controller/controllertest"
	"github.com/belayproject/belay/rollout/protocol"
)

// R-RO-05: two controllers that both act, each on lists that are behind by any number of writes: the caps hold, nothing is evicted without a
// slot, and the end is the same.
func TestTwoControllersWithStaleReads(t *testing.T) {
	for seed := range raceshare.Of(t, uint64(25)) {
		synctest.Test(t, func(t *testing.T) { twoControllers(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func twoControllers(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t, 12, 3)
	other := w.c.Connect()
	stale := func() int {
		if random.IntN(3) > 0 {
			return 0
		}
		return random.IntN(30)
	}
	w.client.Lag, other.Lag = stale, stale
	second, err := controller.New(other.Options())
	if err != nil {
		t.Fatal(err)
	}
	w.want()
	for range 600 {
		for range random.IntN(3) {
			if _, err := second.Reconcile(quiet(t), ""); err != nil {
				t.Errorf("the second controller: %v", err)
			}
		}
		w.step()
	}
	w.client.Lag, other.Lag = nil, nil
	w.steps(5)
	if w.phase() != rollout.Completed {
		t.Errorf("the rollout is %s", w.phase())
	}
	w.sound()
	w.tidy()
	w.once(12, "v2")
}

// R-RO-30 and R-RO-04: nodes come and go, labels are taken and given back, by a third of the fleet, while the rollout goes on: the caps hold, and
// in the end every selected node runs the revision and has a shadow, and no other has one.
func TestChurn(t *testing.T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) { churn(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func churn(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	w := newWorld(t, 30, 5)
	w.policy.Caps = []rollout.Cap{{Scope: rollout.Total, Max: number(5)}}
	w.policy.MaxBroken = nil
	w.want()
	for range 60 {
		i := random.IntN(40)
		switch there := w.c.Node(name(i)).Name != ""; {
		case !there:
			w.add(i)
		case random.IntN(2) == 0 && i >= 20:
			w.c.RemoveNode(name(i))
		default:
			w.c.EditNode(name(i), func(n *controller.Node) {
				if n.Labels["role"] = "worker"; random.IntN(3) == 0 {
					n.Labels["role"] = "other"
				}
			})
		}
		w.step()
	}
	w.until("all selected nodes run it", func() bool { return settled(w) })
	w.steps(5)
	w.sound()
	w.tidy()
	for i := range 40 {
		n := w.c.Node(name(i))
		sh, has := w.c.Shadow(name(i))
		if want := n.Labels["role"] == "worker"; has != want || want && (sh.Runs.Name != "v2" || sh.UID != n.UID) {
			t.Errorf("R-RO-04: node %q, role %q: it has a shadow: %t, of UID %q, runs %q", name(i), n.Labels["role"], has, sh.UID, sh.Runs.Name)
		}
	}
}

func settled(w *world) bool {
	for i := range 40 {
		n := w.c.Node(name(i))
		if sh, _ := w.c.Shadow(name(i)); n.Labels["role"] == "worker" && (sh.Runs.Name != "v2" || sh.UID != n.UID) {
			return false
		}
	}
	return len(w.c.Ledger().Slots) == 0
}

// R-RO-04: a label is taken away in every state of an update: it ends or is undone first, then the shadow goes.
func TestLabelRemovedMidUpdate(t *testing.T) {
	for at := 1; at < 14; at++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, 1)
			w.want()
			w.steps(at)
			w.c.EditNode(name(0), func(n *controller.Node) { n.Labels["role"] = "other" })
			var last protocol.Phase
			w.until("the shadow is gone", func() bool {
				sh, there := w.c.Shadow(name(0))
				if there {
					last = sh.Report.Phase
				}
				return !there
			})
			if !last.AtRest() {
				t.Errorf("R-RO-04: label taken at step %d: the shadow went while the node was %s", at, last)
			}
			w.steps(3)
			w.sound()
			w.tidy()
		})
	}
}

// R-RO-03: a Node of the same name is another one: its predecessor's slot goes with it, and it gets a shadow of its own.
func TestNodeReplaced(t *testing.T) {
	for at := 2; at < 14; at++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2, 1)
			w.want()
			w.steps(at)
			old := w.c.Node(name(0)).UID
			w.c.RemoveNode(name(0))
			w.add(0)
			w.until("both run it", func() bool { return w.c.Runs("v2") == 2 && len(w.c.Ledger().Slots) == 0 })
			if sh, _ := w.c.Shadow(name(0)); sh.UID == old {
				t.Errorf("R-RO-03: replaced at step %d: the shadow is still of UID %q", at, old)
			}
			w.steps(3)
			w.sound()
			w.tidy()
		})
	}
}

// forgetful is a fleet whose cache has lost a node.
type forgetful struct {
	controller.Fleet
	lost *string
}

func (f forgetful) List(ctx context.Context) ([]controller.Node, error) {
	all, err := f.Fleet.List(ctx)
	return slices.DeleteFunc(slices.Clone(all), func(n controller.Node) bool { return n.Name == *f.lost }), err
}

// R-RO-03: a node that is missing in the cache keeps its slot and its shadow: that it is gone is the API server's word.
func TestCacheIsNotBelieved(t *testing.T) {
	for at := 2; at < 12; at++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2, 1)
			lost := ""
			w.o.Fleet = forgetful{w.o.Fleet, &lost}
			w.start()
			w.want()
			w.steps(at)
			before := w.c.Ledger().Slot(w.c.Node(name(0)).UID)
			lost = name(0)
			w.steps(3)
			if after := w.c.Ledger().Slot(w.c.Node(name(0)).UID); before != nil && (after == nil || after.Attempt != before.Attempt) {
				t.Errorf("R-RO-03: missing in the cache at step %d: the slot %+v has become %+v", at, before, after)
			}
			if _, there := w.c.Shadow(name(0)); !there {
				t.Errorf("R-RO-03: missing in the cache at step %d: the shadow is gone", at)
			}
			lost = ""
			w.untilPhase(rollout.Completed)
			w.sound()
			w.once(2, "v2")
		})
	}
}

// A cordon of an attempt that has ended is taken off, also of a node that nobody selects any more.
func TestStrayCordonIsTakenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		w.want()
		w.untilPhase(rollout.Completed)
		w.steps(2)
		sh, _ := w.c.Shadow(name(0))
		w.c.EditNode(name(0), func(n *controller.Node) { n.Labels["role"] = "other" })
		if done, err := w.o.Drainer.Cordon(t.Context(), name(0), sh.UID, int64(sh.Report.Attempt), false); !done || err != nil {
			t.Fatalf("Cordon: %t, %v", done, err)
		}
		w.steps(3)
		w.sound()
		w.tidy()
		if _, there := w.c.Shadow(name(0)); there {
			t.Error("R-RO-04: the node, which nobody selects, has a shadow")
		}
	})
}

// Trouble with one node is an error of the pass, and stops no other one.
func TestOneNodeStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, 2)
		w.o.Drainer = brokenDrainer{w.o.Drainer}
		w.start()
		w.want()
		w.until("the others are done", func() bool { return w.c.Runs("v2") == 3 })
		if len(w.errs) == 0 || !strings.Contains(w.errs[0].Error(), `cordoning node "node-00": no`) {
			t.Errorf("errors %v, want one that names the node", w.errs)
		}
	})
}

// brokenDrainer can't cordon one node.
type brokenDrainer struct{ controller.Drainer }

var errNo = errors.New("no")

func (d brokenDrainer) Cordon(ctx context.Context, node, uid string, attempt int64, drains bool) (bool, error) {
	if node == name(0) {
		return false, errNo
	}
	return d.Drainer.Cordon(ctx, node, uid, attempt, drains)
}

// A cordon for an attempt that was revoked before its agent answered is taken off as well: nobody will ever commit it.
func TestStrayCordonOfARevokedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		w.want()
		w.untilPhase(rollout.Completed)
		w.c.Behave(name(0), controllertest.Behavior{Silent: true})
		w.policy.Target, w.policy.Completed, w.policy.CommitWithin, w.policy.RetryAfter = revision("v3"), w.policy.Target, time.Minute, 12*time.Hour
		w.want()
		w.until("an attempt is revoked", func() bool {
			sh, _ := w.c.Shadow(name(0))
			return sh.Orders.Revoked > sh.Report.Attempt && w.c.Ledger().Slot(sh.UID) == nil
		})
		sh, _ := w.c.Shadow(name(0))
		if done, err := w.o.Drainer.Cordon(t.Context(), name(0), sh.UID, int64(sh.Orders.Revoked), false); !done || err != nil {
			t.Fatalf("Cordon: %t, %v", done, err)
		}
		w.steps(3)
		w.sound()
		w.tidy()
	})
}

// A shadow that somebody deletes makes room for another one, at whatever moment, and the rollout comes to its end without hurry.
func TestDeletedShadowMakesRoom(t *testing.T) {
	for at := range 12 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 3, 1)
			w.want()
			w.steps(at)
			w.c.DeleteShadow(name(1))
			w.untilPhase(rollout.Completed)
			w.steps(3)
			w.sound()
			w.tidy()
			if sh, there := w.c.Shadow(name(1)); !there || sh.Deleting || w.c.Runs("v2") != 3 {
				t.Errorf("deleted at step %d: shadow %+v, there %t, %d nodes run v2", at, sh, there, w.c.Runs("v2"))
			}
		})
	}
}

// What a rollout of another domain has marked stays until that rollout is gone.
func TestMarksOfOtherDomainsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		w.c.PutRollout("theirs", w.infra(1))
		w.o.Rollouts = domain{w.o.Rollouts}
		w.start()
		const mark = `{"attempt":1,"rollout":"rollout-2","baseline":"theirs"}`
		w.c.EditNode(name(50), func(n *controller.Node) { n.Annotations[controller.HeldAnnotation] = mark })
		w.want()
		w.untilPhase(rollout.Completed)
		if got := w.c.Node(name(50)).Annotations[controller.HeldAnnotation]; got != mark {
			t.Errorf("the mark of another domain is %q, want it as it was", got)
		}
		w.c.RemoveRollout("rollout-2")
		w.steps(20)
		if got := w.c.Node(name(50)).Annotations[controller.HeldAnnotation]; got != "" {
			t.Errorf("the mark of a rollout that is gone is %q, want none", got)
		}
		w.sound()
	})
}

// A domain has the first rollout alone.
type domain struct{ controller.Rollouts }

func (d domain) List(ctx context.Context) ([]controller.Rollout, error) {
	all, err := d.Rollouts.List(ctx)
	return slices.DeleteFunc(slices.Clone(all), func(r controller.Rollout) bool { return r.Policy.UID != uid }), err
}
