// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/controller/controllertest"
)

// slow is how long a pass over the nodes of a slowFleet takes: as over 5,000.
const slow = 60 * time.Millisecond

type slowFleet struct{ controller.Fleet }

func (f slowFleet) List(ctx context.Context) ([]controller.Node, error) {
	<-time.After(slow)
	return f.Fleet.List(ctx)
}

// A restless is a controller that runs, and whose passes are counted.
type restless struct {
	*world
	passes atomic.Int64
	wake   chan struct{}
}

// newRestless has its controller run, with slow passes, until the test ends.
func newRestless(t *testing.T, w *world) *restless {
	r := &restless{world: w, wake: make(chan struct{}, 1)}
	w.o.Fleet = slowFleet{w.o.Fleet}
	w.o.Metrics.Pass = func(time.Duration, error) { r.passes.Add(1) }
	w.start()
	ctx, cancel := context.WithCancel(quiet(t))
	ended := make(chan error, 1)
	go func() { ended <- w.ctl.Run(ctx, r.wake) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

func (r *restless) ring() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// over rings that often for so long, and returns how many passes there were.
func (r *restless) over(long, every time.Duration) int64 {
	before := r.passes.Load()
	for range long / every {
		r.ring()
		<-time.After(every)
	}
	return r.passes.Load() - before
}

// Where nothing is to be done, wake-ups cost a thirtieth of the time: without a rollout, with one that is completed, with one that can't be followed, and with a
// node that is broken for good.
func TestWakeUpsInVain(t *testing.T) {
	for what, prepare := range map[string]func(w *world){
		"no rollout": func(*world) {},
		"completed": func(w *world) {
			w.want()
			w.untilPhase(rollout.Completed)
		},
		"can't be followed": func(w *world) {
			w.want()
			w.untilPhase(rollout.Completed)
			w.c.EditRollout(uid, func(r *controller.Rollout) { r.Invalid = errors.New("there is no revision v2") })
			w.steps(3)
		},
		"broken": func(w *world) {
			w.policy.Detectors = []rollout.Detector{rollout.Failures{At: number(1)}}
			w.behave(0, 2, broken())
			w.want()
			w.untilPhase(rollout.Frozen)
			w.steps(300)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2, 1)
			prepare(w)
			r := newRestless(t, w)
			<-time.After(time.Minute)
			if n := r.over(time.Minute, slow); n < 30 || n > 40 { // some come sooner, as the pass before has asked for that
				t.Errorf("%s: %d passes of %v within a minute of wake-ups, want one each 31 times as long", what, n, slow)
			}
		})
	}
}

// A wake-up in a rest is heard after it.
func TestWakeUpInARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRestless(t, newWorld(t, 2, 1))
		<-time.After(time.Minute)
		before := r.passes.Load()
		r.ring()
		<-time.After(2 * slow)
		r.ring() // in the rest after the pass
		<-time.After(3 * time.Second)
		if n := r.passes.Load() - before; n != 2 {
			t.Errorf("%d passes after two wake-ups, want 2", n)
		}
	})
}

// Nobody who wants something waits until a controller has rested.
func TestRestEndsForPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRestless(t, newWorld(t, 2, 1))
		<-time.After(time.Minute)
		r.ring()
		<-time.After(2 * slow)
		before := r.passes.Load()
		r.want()
		r.ring()
		<-time.After(slow + time.Millisecond)
		if n := r.passes.Load() - before; n != 1 {
			t.Errorf("%d passes within the time of one after a rollout was made, want 1", n)
		}
	})
}

// An askingGate has people want something while the gates are asked, once.
type askingGate struct {
	gate
	want func()
}

func (g *askingGate) Verdict(ctx context.Context) rollout.Verdict {
	if g.want != nil {
		g.want()
		g.want = nil
	}
	return g.gate.Verdict(ctx)
}

// Nor does somebody wait who has wanted something during the pass.
func TestNoRestForWhatWasWantedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		g := &askingGate{gate: gate{answer: rollout.Allow}}
		w.o.Gates = []controller.Gate{g}
		r := newRestless(t, w)
		<-time.After(time.Minute)
		before := r.passes.Load()
		g.want = func() {
			w.want()
			r.ring()
		}
		r.ring()
		<-time.After(2*slow + time.Millisecond)
		if n := r.passes.Load() - before; n != 2 {
			t.Errorf("%d passes within the time of two, in the first of which a rollout was made; want 2", n)
		}
	})
}

// R-RO-07: a rest ends when the pass before it has asked for the next one, as it does where the operator is switched off, whenever that is.
func TestRestEndsAsAsked(t *testing.T) {
	for i := range 10 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 6, 2)
			off := w.switchedOff()
			w.want()
			w.steps(3)
			newRestless(t, w)
			<-time.After(time.Hour + time.Duration(i)*200*time.Millisecond)
			off.Store(false)
			<-time.After(time.Second + 2*slow + time.Millisecond)
			synctest.Wait()
			if l := w.c.Ledger(); l.Epoch != 2 {
				t.Errorf("%d nodes were admitted a second after the operator was switched on, want 2", l.Epoch)
			}
		})
	}
}

// While a slot goes on, a controller does not rest.
func TestNoRestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		w.want()
		w.untilKnown(2)
		w.behave(0, 2, controllertest.Behavior{Silent: true})
		w.until("a node has a slot", func() bool { return len(w.c.Ledger().Slots) == 1 })
		r := newRestless(t, w)
		if n := r.over(time.Minute, 2*slow); n < 450 {
			t.Errorf("%d passes of %v within a minute of wake-ups each %v, want one for each", n, slow, 2*slow)
		}
		if got := w.phase(); got != rollout.Running {
			t.Errorf("the rollout is %s, want it to be going on", got)
		}
	})
}
