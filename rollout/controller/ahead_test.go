// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/protocol"
)

// patient has a controller that shows nothing before it must.
func patient(t *testing.T, n, at int) *world {
	w := newWorld(t, n, at)
	w.o.ShowEvery = 1000 * time.Hour
	w.policy.RetryAfter = time.Minute
	w.start()
	w.want()
	return w
}

// results are the outcomes that a rollout remembers, by node.
func (w *world) results() map[string]rollout.Result {
	r, _, _ := w.c.Rollout(uid)
	all := map[string]rollout.Result{}
	for _, o := range r.Progress.Outcomes {
		if was, twice := all[o.Node]; twice {
			w.t.Errorf("node %q has the outcomes %s and %s", o.Node, was, o.Result)
		}
		all[o.Node] = o.Result
	}
	return all
}

// Which nodes are on their way, and which have got there, is stored for several of them at once: fewer writes than nodes.
func TestProgressIsStoredTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := patient(t, 20, 5)
		w.untilPhase(rollout.Completed)
		w.sound()
		w.once(20, "v2")
		if got := w.results(); len(got) != 20 {
			t.Errorf("%d outcomes are remembered, want 20: %v", len(got), got)
		}
		if writes := w.c.Writes()["progress"]; writes == 0 || writes > 10 {
			t.Errorf("the status was written %d times for 20 nodes, 5 at a time, want 10 times at most", writes)
		}
	})
}

// What a rollout only shows is written every ten seconds at most, and once more soon after the last change; a phase at once.
func TestShownAtLeisure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 3)
		w.want()
		var shown []time.Time
		phase := w.phase()
		w.client.OnWrite = func(kind string, done bool) {
			if !done || !strings.HasPrefix(kind, "progress") {
				return
			}
			if now := w.phase(); now != phase { // not only shown
				phase = now
				return
			}
			shown = append(shown, time.Now())
		}
		second := func() {
			w.pass()
			<-time.After(time.Second)
		}
		for range 60 { // the drain ends, and the agents don't get on
			if second(); w.c.Node(name(0)).Unschedulable {
				continue
			}
			w.c.Agents()
		}
		for i := range shown {
			if i > 0 && shown[i].Sub(shown[i-1]) < 10*time.Second {
				t.Errorf("what is only shown is written %s after the time before, want 10s at least: %v", shown[i].Sub(shown[i-1]), shown)
			}
		}
		if r, _, _ := w.c.Rollout(uid); len(shown) == 0 || r.Progress.Nodes[w.c.Node(name(0)).UID].State != protocol.Proceeding {
			t.Errorf("a minute later it was shown %d times, and node %q is shown as %+v", len(shown), name(0), r.Progress.Nodes[w.c.Node(name(0)).UID])
		}
		w.sound()
	})
}

// As long as there are slots a pass asks for the next one in time: what wakes a controller may have been missed. Without slots it sleeps.
func TestSlotsKeepTheControllerAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		w.want()
		w.until("the node is cordoned", func() bool { return w.c.Node(name(0)).Unschedulable })
		if after, err := w.ctl.Reconcile(quiet(t), ""); err != nil || after <= 0 || after > 3*time.Second {
			t.Errorf("with a slot a pass asks for the next one in %s, %v; want in 3s at most", after, err)
		}
		w.untilPhase(rollout.Completed)
		w.steps(3)
		if after, err := w.ctl.Reconcile(quiet(t), ""); err != nil || after != 0 {
			t.Errorf("when all is done a pass asks for the next one in %s, %v; want none", after, err)
		}
	})
}

// A controller that dies right after it has freed slots loses no outcome (R-RO-01): the next one knows of each attempt that there was one.
func TestOutcomeOutlivesItsController(t *testing.T) {
	frees := 1
	for at := 1; at <= frees; at++ {
		synctest.Test(t, func(t *testing.T) {
			w := patient(t, 4, 2)
			w.c.Behave(name(1), failing())
			frees = 0
			w.client.OnWrite = func(kind string, done bool) {
				if !done || !strings.HasPrefix(kind, "ledger") {
					return
				}
				if frees++; frees == at {
					runtime.Goexit()
				}
			}
			w.untilPhase(rollout.Completed)
			w.sound()
			want := map[string]rollout.Result{name(0): rollout.Succeeded, name(1): rollout.FailedClean, name(2): rollout.Succeeded, name(3): rollout.Succeeded}
			got := w.results()
			for node, result := range want {
				if got[node] != result {
					t.Errorf("killed after write %d of the ledger: node %q has the outcome %q, want %q", at, node, got[node], result)
				}
			}
			r, _, _ := w.c.Rollout(uid)
			if n := r.Progress.Nodes[w.c.Node(name(1)).UID].Attempts; n != 3 {
				t.Errorf("killed after write %d of the ledger: %d failures of node %q are remembered, want 3", at, n, name(1))
			}
			if n := w.c.Ledger().Epoch; n != 6 {
				t.Errorf("killed after write %d of the ledger: %d attempts were made, want 3 on node %q and one on each other", at, n, name(1))
			}
		})
	}
	if frees < 5 {
		t.Errorf("the ledger was written %d times, want more", frees)
	}
}

// A node that goes while it is disturbed counts as lost, also where the controller dies right after it has freed its slot.
func TestLossOutlivesItsController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := patient(t, 2, 1)
		w.untilKnown(1)
		w.pass()
		w.ask("now", rollout.Promote) // that is to be remembered, and so it is stored that the node has a slot
		w.pass()
		w.until("the first node is disturbed", func() bool {
			sh, _ := w.c.Shadow(name(0))
			return sh.Report.Phase == protocol.PhaseApplying
		})
		w.pass()
		w.c.RemoveNode(name(0))
		w.client.OnWrite = func(kind string, done bool) {
			if done && strings.HasPrefix(kind, "ledger") {
				w.client.OnWrite = nil
				runtime.Goexit()
			}
		}
		w.untilPhase(rollout.Completed)
		w.sound()
		if got := w.results()[name(0)]; got != rollout.Lost {
			t.Errorf("a node that has gone in the middle of its update has the outcome %q, want %q", got, rollout.Lost)
		}
	})
}

// A rollout that is stopped in the very pass in which a slot of it ends has what was decided of it before stored, and is not taken for one of which that
// can't be done.
func TestStopWithWhatIsNotStored(t *testing.T) {
	for _, do := range []rollout.Do{rollout.Abort, rollout.Pause} {
		synctest.Test(t, func(t *testing.T) {
			w := patient(t, 2, 1)
			w.until("a node is done of which nothing is stored", func() bool {
				sh, _ := w.c.Shadow(name(0))
				r, _, _ := w.c.Rollout(uid)
				return sh.Report.Phase == protocol.PhaseDone && r.Progress.Nodes[sh.UID].Attempt == 0
			})
			w.spoil(rollout.Verb{Request: "stop-1", Do: do})
			w.client.OnWrite = func(kind string, done bool) {
				r, shown, _ := w.c.Rollout(uid)
				if is := r.Progress.Nodes[w.c.Node(name(0)).UID]; !done && strings.HasPrefix(kind, "ledger") && len(w.c.Ledger().Slots) > 0 && is.Attempt == 0 {
					t.Errorf("%s: the slot is freed, and nothing is stored of the attempt: %+v", do, is)
				}
				if done && strings.HasPrefix(kind, "progress") && strings.Contains(shown.Message, "can't be written") {
					t.Errorf("%s: it shows %q, and its status was written", do, shown.Message)
				}
			}
			w.pass()
			if _, shown, _ := w.c.Rollout(uid); len(w.c.Ledger().Slots) > 0 || shown.Reason != controller.ReasonStopped {
				t.Errorf("%s: after the pass there are %d slots, and it shows %q: %q; want no slot, and %q",
					do, len(w.c.Ledger().Slots), shown.Reason, shown.Message, controller.ReasonStopped)
			}
			w.steps(3)
			w.sound()
			if got := w.results()[name(0)]; got != rollout.Succeeded {
				t.Errorf("%s: the node that was done has the outcome %q, want %q", do, got, rollout.Succeeded)
			}
		})
	}
}

// A rollout whose status can't be written keeps its slots, and says so; the nodes of others come to their end meanwhile, and it goes on when it can.
func TestUnwritableStatusStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 7)
		w.o.ShowEvery = 1000 * time.Hour
		fails := false
		w.o.Rollouts = &unwritable{w.o.Rollouts, &fails}
		w.start()
		w.want()
		w.c.PutRollout("infra", w.infra(7))
		of := func(uid string) (n int) {
			for _, s := range w.c.Ledger().Slots {
				if s.Rollout == uid {
					n++
				}
			}
			return n
		}
		w.until("both have slots", func() bool { return of(uid) > 0 && of("rollout-2") > 0 })
		fails = true
		w.until("the other one has no slot any more", func() bool { return of("rollout-2") == 0 })
		w.steps(5)
		if of(uid) == 0 || len(w.errs) == 0 || !strings.Contains(w.errs[0].Error(), "storing the progress") {
			t.Errorf("the rollout has %d slots, and the passes say %v; want its slots kept, and the reason told", of(uid), w.errs)
		}
		fails, w.errs = false, nil
		w.until("both are completed", func() bool {
			_, second, _ := w.c.Rollout("rollout-2")
			return w.phase() == rollout.Completed && second.Phase == rollout.Completed
		})
		w.sound()
		w.once(2, "v2")
	})
}

// An unwritable store fails for the first rollout.
type unwritable struct {
	controller.Rollouts
	fails *bool
}

func (s *unwritable) Store(ctx context.Context, read controller.Rollout, d rollout.Decisions) (controller.Rollout, time.Duration, error) {
	if *s.fails && read.Policy.UID == uid {
		return read, 0, errors.New("the webhook is down")
	}
	return s.Rollouts.Store(ctx, read, d)
}
