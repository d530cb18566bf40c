// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/controller/controllertest"
	"github.com/belayproject/belay/rollout/protocol"
)

// R-RO-12: a drain that a budget blocks is named before its deadline. Hold keeps the slot, Undo gives the node back, Force goes on.
func TestStuckDrain(t *testing.T) {
	for _, c := range []struct {
		do  rollout.StuckDrain
		end string
	}{{"Hold", "v1"}, {rollout.UndoDrain, "v1"}, {rollout.ForceDrain, "v2"}} {
		t.Run(string(c.do), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { stuck(t, c.do, c.end) })
		})
	}
}

func stuck(t *testing.T, do rollout.StuckDrain, end string) {
	w := newWorld(t, 3, 1)
	w.c.Behave(name(0), controllertest.Behavior{Stuck: true})
	w.policy.StuckDrain, w.policy.DrainWithin, w.policy.RetryAfter = do, 10*time.Minute, 5*time.Hour
	w.want()
	w.until("the culprit is named", func() bool {
		_, shown, _ := w.c.Rollout(uid)
		return strings.Contains(shown.Blocked[name(0)], `pod "shop/web-0" is kept by budget "web"`)
	})
	if r, _, _ := w.c.Rollout(uid); time.Since(r.Progress.Nodes[w.c.Node(name(0)).UID].Since) > 2*time.Minute {
		t.Errorf("R-RO-12: the culprit is named late")
	}
	w.steps(100)
	w.sound()
	sh, _ := w.c.Shadow(name(0))
	if sh.Runs.Name != end {
		t.Errorf("R-RO-12: %s: the node runs %q, want %q", do, sh.Runs.Name, end)
	}
	n, slot := w.c.Node(name(0)), w.c.Ledger().Slot(w.c.Node(name(0)).UID)
	switch do {
	case "Hold":
		if slot == nil || !n.Unschedulable || w.c.Runs("v2") != 0 {
			t.Errorf("R-RO-12: Hold: slot %+v, cordoned %t, %d others begun, want the node held and the cap kept", slot, n.Unschedulable, w.c.Runs("v2"))
		}
	case rollout.UndoDrain:
		if n.Unschedulable || sh.Report.Phase != protocol.PhaseUndone || w.c.Runs("v2") != 2 {
			t.Errorf("R-RO-12: Undo: %s, cordoned %t, %d others done, want it given back and the others done",
				sh.Report.Phase, n.Unschedulable, w.c.Runs("v2"))
		}
	case rollout.ForceDrain:
		w.tidy()
	}
}

// R-RO-09: a node that is unhealthy before it is touched is put off, and no failure.
func TestSickNodeIsPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 1)
		w.c.Behave(name(0), controllertest.Behavior{Sick: `pod "shop/web-0" is not ready`})
		w.want()
		w.until("the others are done", func() bool { return w.c.Runs("v2") == 2 })
		w.steps(3)
		if _, shown, _ := w.c.Rollout(uid); shown.Counts.Deferred != 1 || shown.Counts.Failed != 0 {
			t.Errorf("R-RO-09: %+v, want one deferred and none failed", shown.Counts)
		}
		w.c.Behave(name(0), controllertest.Behavior{})
		w.untilPhase(rollout.Completed)
		w.sound()
		w.once(3, "v2")
	})
}

// R-RO-10: a node whose pods do not come back, compared with before the cordon, freezes the rollout; nothing more is begun.
func TestWorkThatDoesNotComeBackFreezes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5, 1)
		w.c.Behave(name(0), controllertest.Behavior{Bare: true})
		w.want()
		w.untilPhase(rollout.Frozen)
		epoch := w.c.Ledger().Epoch
		w.steps(50)
		if l := w.c.Ledger(); l.Epoch != epoch || l.ClosedFor(uid) == nil || w.c.Runs("v2") != 1 {
			t.Errorf("R-RO-10: %d attempts after the freeze, closed %v, %d nodes changed, want none, closed, and one",
				l.Epoch-epoch, l.ClosedFor(uid), w.c.Runs("v2"))
		}
		w.c.Behave(name(0), controllertest.Behavior{})
		w.ask("accept-1", rollout.Accept)
		w.untilPhase(rollout.Completed)
		w.steps(3)
		w.sound()
		w.tidy()
		w.once(5, "v2")
	})
}

// R-RO-19 and R-RO-20: after an abort was acknowledged nobody commits; what drains is given back; a resumed rollout ends as one that was not stopped.
func TestAbortAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for at := 1; at < 30; at += 3 {
			w := newWorld(t, 8, 3)
			w.want()
			if w.steps(at); w.phase() == rollout.Completed {
				break
			}
			w.ask("abort-1", rollout.Abort)
			w.until("the abort is acknowledged", func() bool { _, shown, _ := w.c.Rollout(uid); return shown.Acknowledged })
			committed := commits(w)
			w.untilPhase(rollout.Aborted)
			w.steps(3)
			if now := commits(w); now != committed {
				t.Errorf("R-RO-19: aborted at step %d: %d nodes have committed after the acknowledgement", at, now-committed)
			}
			w.tidy()
			w.ask("resume-1", rollout.Resume)
			w.untilPhase(rollout.Completed)
			w.steps(3)
			w.sound()
			w.tidy()
			w.once(8, "v2")
		}
	})
}

// commits is the sum of all attempts that agents have answered.
func commits(w *world) (sum protocol.Attempt) {
	for i := range 20 {
		sh, _ := w.c.Shadow(name(i))
		sum += sh.Report.Attempt
	}
	return sum
}

// announced remembers for which cordons the drain was announced.
type announced struct {
	controller.Drainer
	said []bool
}

func (a *announced) Cordon(ctx context.Context, node, uid string, attempt int64, drains bool) (bool, error) {
	a.said = append(a.said, drains)
	return a.Drainer.Cordon(ctx, node, uid, attempt, drains)
}

// R-RO-12: a drain begins with the cordon of a node whose agent waits for it. A broken node that waits for its next attempt is only cordoned:
// what escalates from the beginning of the drain would be early.
func TestDrainBeginsWhenTheAgentWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		asked := &announced{Drainer: w.o.Drainer}
		w.o.Drainer = asked
		w.start()
		w.c.Behave(name(0), controllertest.Behavior{Fails: func(string) protocol.Event { return protocol.EventBroke }})
		w.want()
		var sh controller.Shadow
		w.until("the node is broken", func() bool {
			sh, _ = w.c.Shadow(name(0))
			return sh.Report.Phase == protocol.PhaseFailedBroken
		})
		w.c.Behave(name(0), controllertest.Behavior{Silent: true})
		w.until("it has another attempt", func() bool { return w.c.Ledger().Slot(sh.UID).Attempt > sh.Report.Attempt })
		w.c.EditNode(name(0), func(n *controller.Node) {
			delete(n.Annotations, controllertest.CordonAnnotation)
			n.Unschedulable = false
		})
		w.step()
		w.c.Behave(name(0), controllertest.Behavior{})
		w.untilPhase(rollout.Completed)
		if want := []bool{true, false}; !slices.Equal(asked.said, want) {
			t.Errorf("cordons announced a drain: %v, want %v: for the first attempt, and not before the second", asked.said, want)
		}
	})
}

// R-RO-07: when the operator is switched off nothing more is admitted, and what has begun ends.
func TestSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 6, 2)
		off := ""
		w.o.Off = func() string { return off }
		w.start()
		w.want()
		w.until("two are in flight", func() bool { return len(w.c.Ledger().Slots) == 2 && w.c.Runs("v2") == 0 })
		off = "switched off by alice"
		epoch := w.c.Ledger().Epoch
		w.steps(100)
		if l := w.c.Ledger(); l.Epoch != epoch || len(l.Slots) != 0 || w.c.Runs("v2") != 2 {
			t.Errorf("R-RO-07: %d admitted, %d slots left, %d done, want none, none and 2", l.Epoch-epoch, len(l.Slots), w.c.Runs("v2"))
		}
		w.tidy()
		off = ""
		w.untilPhase(rollout.Completed)
		w.sound()
		w.once(6, "v2")
	})
}

// R-RO-07: what was decided while the operator was on is not stored when it is off by then.
func TestSwitchIsAskedBeforeTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 6, 2)
		asked := 0
		w.o.Off = func() string {
			if asked++; asked%2 == 0 { // the second time is before the store
				return "switched off"
			}
			return ""
		}
		w.start()
		w.want()
		w.steps(10)
		if l := w.c.Ledger(); l.Epoch != 0 {
			t.Errorf("R-RO-07: %d nodes were admitted by a decision from before the switch", l.Epoch)
		}
	})
}

// switchedOff has the operator be off until the switch is set to false.
func (w *world) switchedOff() (off *atomic.Bool) {
	off = &atomic.Bool{}
	off.Store(true)
	w.o.Off = func() string {
		if off.Load() {
			return "switched off"
		}
		return ""
	}
	w.start()
	return off
}

// R-RO-07: that the operator is switched on again nobody tells the controller; it notices within a second.
func TestSwitchedOnIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 6, 2)
		off := w.switchedOff()
		w.want()
		w.steps(3) // the nodes have shadows, and their agents have spoken
		ctx, cancel := context.WithCancel(quiet(t))
		ended := make(chan error, 1)
		go func() { ended <- w.ctl.Run(ctx, nil) }()
		<-time.After(time.Hour)
		if l := w.c.Ledger(); l.Epoch != 0 {
			t.Errorf("R-RO-07: %d nodes were admitted while the operator was off", l.Epoch)
		}
		off.Store(false)
		<-time.After(time.Second)
		synctest.Wait()
		if l := w.c.Ledger(); l.Epoch != 2 {
			t.Errorf("R-RO-07: %d nodes were admitted a second after the operator was switched on, want 2", l.Epoch)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run has returned %v", err)
		}
	})
}
