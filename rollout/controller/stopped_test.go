// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/controller/controllertest"
	"github.com/belayproject/belay/rollout/protocol"
)

var errNoRevision = errors.New(`spec.revision.name is "v2", want the name of a Revision that there is`)

// spoil has the policy of the world refused from now on, as when its revision was deleted: then a verb is all that is known of it.
func (w *world) spoil(v rollout.Verb) {
	w.c.EditRollout(uid, func(r *controller.Rollout) {
		r.Policy, r.Invalid = rollout.Policy{UID: uid, Verb: v}, errNoRevision
	})
}

// mend is the opposite, with what somebody asks for.
func (w *world) mend(v rollout.Verb) {
	w.policy.Verb = v
	w.c.EditRollout(uid, func(r *controller.Rollout) { r.Invalid = nil })
	w.want()
}

// R-RO-19 and R-RO-20: a rollout whose policy can't be followed any more is aborted all the same, at any time: the ledger is closed, grants are revoked, what
// drains is given back, and that is acknowledged. What is remembered of it stays, so that it goes on from there once the policy can be followed again.
func TestAbortOfAnInvalidRollout(t *testing.T) {
	for at := 1; at < 30; at += 3 {
		synctest.Test(t, func(t *testing.T) { abortInvalid(t, at) })
	}
}

func abortInvalid(t *testing.T, at int) {
	w := newWorld(t, 8, 3)
	w.want()
	if w.steps(at); w.phase() == rollout.Completed {
		return
	}
	before, _, _ := w.c.Rollout(uid)
	w.spoil(rollout.Verb{Request: "abort-1", Do: rollout.Abort})
	w.until("the abort is acknowledged", func() bool { _, shown, _ := w.c.Rollout(uid); return shown.Acknowledged })
	committed := commits(w)
	w.untilPhase(rollout.Aborted)
	w.steps(3)
	if now := commits(w); now != committed {
		t.Errorf("R-RO-19: aborted at step %d: %d nodes have committed after the acknowledgement", at, now-committed)
	}
	w.tidy()
	r, shown, _ := w.c.Rollout(uid)
	if shown.Reason != controller.ReasonStopped || !strings.Contains(shown.Message, errNoRevision.Error()) || !strings.Contains(shown.Message, "abort-1") {
		t.Errorf("R-RO-19: it shows %q: %q, want what is wrong, and what was asked for all the same", shown.Reason, shown.Message)
	}
	was, is := before.Progress, r.Progress
	if !reflect.DeepEqual(was.Members, is.Members) || was.Stage != is.Stage || len(is.Outcomes) < len(was.Outcomes) || is.Handled != "abort-1" {
		t.Errorf("R-RO-20: aborted at step %d: remembered was %+v, is %+v, want no less", at, was, is)
	}
	w.mend(rollout.Verb{Request: "resume-1", Do: rollout.Resume})
	w.untilPhase(rollout.Completed)
	w.steps(3)
	w.sound()
	w.tidy()
	w.once(8, "v2")
}

// R-RO-32: likewise a pause revokes what is granted; what has committed stays as it is, and goes on with the policy.
func TestPauseOfAnInvalidRollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, 2)
		w.c.Behave(name(0), controllertest.Behavior{Stuck: true})
		w.want()
		w.steps(2)
		w.c.Behave(name(1), controllertest.Behavior{Silent: true})
		w.until("one drains, and one is granted", func() bool {
			a, _ := w.c.Shadow(name(0))
			b, _ := w.c.Shadow(name(1))
			return a.Report.Phase == protocol.PhaseCommitted && b.Orders.Grant > 0
		})
		w.spoil(rollout.Verb{Request: "pause-1", Do: rollout.Pause})
		w.until("the pause is acknowledged", func() bool { _, shown, _ := w.c.Rollout(uid); return shown.Acknowledged })
		drains := w.c.Writes()["evict"]
		w.steps(20)
		if n := w.c.Writes()["evict"]; n != drains {
			t.Errorf("R-RO-32: %d evictions during the pause, of a node that can't go on", n-drains)
		}
		a, _ := w.c.Shadow(name(0))
		b, _ := w.c.Shadow(name(1))
		if a.Report.Phase != protocol.PhaseCommitted || a.Orders.Undo != 0 || b.Orders.Revoked < b.Orders.Grant || len(w.c.Ledger().Slots) != 1 {
			t.Errorf("R-RO-32: %+v, %+v, %d slots, want the one that drains as it was, and the grant revoked", a, b, len(w.c.Ledger().Slots))
		}
		w.c.Behave(name(0), controllertest.Behavior{})
		w.c.Behave(name(1), controllertest.Behavior{})
		w.mend(rollout.Verb{Request: "resume-1", Do: rollout.Resume})
		w.untilPhase(rollout.Completed)
		w.steps(3)
		w.sound()
		w.once(4, "v2")
	})
}

// Without such a request nothing is decided for a rollout whose policy can't be followed, whatever else somebody asks for.
func TestInvalidRolloutStaysAsItIs(t *testing.T) {
	for _, do := range []rollout.Do{"", rollout.Promote, rollout.Accept, rollout.Resume} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 4, 2)
			w.want()
			w.until("nodes are under way", func() bool { return len(w.c.Ledger().Slots) == 2 })
			w.spoil(rollout.Verb{Request: "ask-1", Do: do})
			w.step()
			ledger := w.c.Ledger()
			w.steps(20)
			r, _, _ := w.c.Rollout(uid)
			if !reflect.DeepEqual(w.c.Ledger(), ledger) || r.Progress.Handled != "" {
				t.Errorf("%q: the ledger has become %+v, the request %q was handled, want nothing", do, w.c.Ledger(), r.Progress.Handled)
			}
			w.sound()
		})
	}
}

// A request that the phase does not allow is refused, and changes nothing else.
func TestRefusedAbortOfAnInvalidRollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 2)
		w.want()
		w.untilPhase(rollout.Completed)
		before, _, _ := w.c.Rollout(uid)
		w.spoil(rollout.Verb{Request: "abort-1", Do: rollout.Abort})
		w.steps(5)
		r, _, _ := w.c.Rollout(uid)
		if w.phase() != rollout.Completed || r.Progress.Handled != "abort-1" || r.Progress.Refused == "" {
			t.Errorf("%s, handled %q, refused %q, want it completed, and the request refused", w.phase(), r.Progress.Handled, r.Progress.Refused)
		}
		r.Progress.Handled, r.Progress.Refused = "", ""
		if !reflect.DeepEqual(r.Progress, before.Progress) {
			t.Errorf("remembered is %+v, want %+v", r.Progress, before.Progress)
		}
		w.sound()
	})
}

// R-RO-22: nor is a node cordoned whose revision does not ask for that.
func TestAbortOfAnInvalidNonIntrusiveRollout(t *testing.T) {
	for at := 1; at < 14; at++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 4, 2)
			w.policy.Target.Class = rollout.NonIntrusive
			w.want()
			if w.steps(at); w.phase() == rollout.Completed {
				return
			}
			w.spoil(rollout.Verb{Request: "abort-1", Do: rollout.Abort})
			w.untilPhase(rollout.Aborted)
			w.steps(3)
			if n := w.c.Writes(); n["cordon"] != 0 || n["evict"] != 0 {
				t.Errorf("R-RO-22: step %d: %d cordons, %d evictions, want none", at, n["cordon"], n["evict"])
			}
			w.sound()
			w.tidy()
		})
	}
}

// R-RO-18, R-RO-20: what ends while a rollout whose policy can't be followed is stopped counts as what it is: a success after a failure, so that the others go
// on, and a failure, so that they do not.
func TestEndsDuringAnInvalidPauseCount(t *testing.T) {
	for what, c := range map[string]struct {
		first, second protocol.Event // of the node's first attempt, and of the one that ends during the pause
		critical      bool
		phase         rollout.Phase
		run           int
	}{
		"recovers":          {first: protocol.EventFellBack, phase: rollout.Completed, run: 3},
		"succeeds":          {phase: rollout.Completed, run: 3},
		"fails, detected":   {second: protocol.EventBroke, phase: rollout.Frozen},
		"fails, a critical": {second: protocol.EventFellBack, critical: true, phase: rollout.Frozen},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 3, 1)
			w.policy.RetryAfter = time.Second
			if c.critical {
				w.policy.Critical = labels.Everything()
			} else {
				w.policy.Detectors = []rollout.Detector{rollout.Failures{At: number(2)}}
				if c.second != "" {
					w.policy.Detectors = []rollout.Detector{rollout.Failures{At: number(1)}}
				}
			}
			attempts := 0
			w.c.Behave(name(0), controllertest.Behavior{Fails: func(string) protocol.Event {
				if attempts++; attempts == 1 && c.first != "" {
					return c.first
				}
				return c.second
			}})
			w.want()
			w.until("the attempt in question is applied", func() bool {
				sh, _ := w.c.Shadow(name(0))
				return sh.Report.Phase == protocol.PhaseApplying && (c.first == "" || attempts == 1)
			})
			w.spoil(rollout.Verb{Request: "pause-1", Do: rollout.Pause})
			w.until("it has ended", func() bool {
				sh, _ := w.c.Shadow(name(0))
				return sh.Report.Phase.AtRest() || sh.Report.Phase == protocol.PhaseFailedBroken
			})
			w.steps(5)
			w.mend(rollout.Verb{Request: "resume-1", Do: rollout.Resume})
			w.steps(3)
			w.untilPhase(c.phase)
			w.steps(20)
			if n := w.c.Runs("v2"); n != c.run || w.phase() != c.phase {
				t.Errorf("%s: %d nodes run v2, want %d; the rollout is %s", what, n, c.run, w.phase())
			}
			w.sound()
		})
	}
}

// A rollout that was refused does not become valid by being paused.
func TestPauseOfARefusedRollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		w.policy.Groups[0].Nodes, w.policy.Groups[0].Selector = []string{name(0), "misspelt"}, nil
		w.want()
		w.steps(3)
		for i, do := range []rollout.Do{rollout.Pause, rollout.Resume, rollout.Pause} {
			w.ask(fmt.Sprint("ask-", i), do)
			w.steps(20)
			if _, shown, _ := w.c.Rollout(uid); !strings.Contains(shown.Message, "misspelt") || len(w.c.Ledger().Slots) != 0 || w.c.Runs("v2") != 0 {
				t.Fatalf("after %s: %d slots, it shows %q, want what is wrong", do, len(w.c.Ledger().Slots), shown.Message)
			}
		}
		w.policy.Groups[0].Nodes = []string{name(0), name(1)}
		w.want()
		if w.steps(20); w.phase() != rollout.Paused || len(w.c.Ledger().Slots) != 0 {
			t.Errorf("R-RO-32: it is %s once it was mended, want it paused as somebody has asked", w.phase())
		}
		w.ask("go", rollout.Resume)
		w.untilPhase(rollout.Completed)
		w.sound()
	})
}
