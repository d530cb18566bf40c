// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/identity"
)

// lefts counts the events of those who left.
func lefts(events []string) int {
	n := 0
	for _, e := range events {
		if strings.Contains(e, "Left") {
			n++
		}
	}
	return n
}

// dyingFleet is a world with n members, of which the first, m0 and so on, have just died: their last writes were at 10 s, 11 s and so on.
func dyingFleet(t *testing.T, n, die int, changes ...func(*identity.ViewConfig)) *world {
	t.Helper()
	w := newWorld(t, nil, changes...)
	ctx, cancel := newContext(t)
	for i := range n {
		live := w.ctx
		if i < die {
			live = ctx
		}
		w.live(live, fmt.Sprint("m", i), time.Duration(i%9)*time.Second, beat)
	}
	w.after(19 * time.Second)
	w.told()
	cancel()
	return w
}

// TestMassLossIsHeldBack kills more members at once than MassLoss allows, and shows that none is lost before the hold is over. R-ID-12.
func TestMassLossIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var brakes []bool
		w := dyingFleet(t, 11, 5, func(c *identity.ViewConfig) { // with the canary 5 of 12
			c.Metrics.Brake = func(on bool) { brakes = append(brakes, on) }
		})
		defer w.stop()
		w.after(60 * time.Second)
		if n := lefts(w.told()); n != 0 || len(w.view.Peers(identity.Suspect)) != 5 || w.view.Freshness().Held != 5 {
			t.Errorf("%d have left, %+v, want all 5 held back", n, w.view.Freshness())
		}
		w.wantSick("the brake holds", "5 held back by the mass-loss brake: more than 33 % of the peers would be lost at once")
		w.after(165 * time.Second) // 244 s; 40 s + 200 s from 10 s on is 250 s, and the next write of the canary but one is at 260 s
		if n := lefts(w.told()); n != 0 {
			t.Errorf("%d have left before the hold was over", n)
		}
		w.after(30 * time.Second)
		if n := lefts(w.told()); n != 5 {
			t.Errorf("%d have left after the hold, want 5", n)
		}
		w.wantHealthy()
		if fmt.Sprint(brakes) != "[true false]" {
			t.Errorf("the metric was told %v, want on and off", brakes)
		}
	})
}

// TestBrakeLetsGoWhenEnoughReturn brings back all but as many as may be lost.
func TestBrakeLetsGoWhenEnoughReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := dyingFleet(t, 11, 6)
		defer w.stop()
		w.after(56 * time.Second)
		w.told()
		w.live(w.ctx, "m0", 0, beat)
		w.after(0)
		w.wantTold("5 of 12 are still too many", "75s Recovered m0")
		w.live(w.ctx, "m1", 0, beat)
		w.after(0)
		if got := w.told(); len(got) != 5 || lefts(got) != 4 {
			t.Errorf("told %q, want the return of m1 and the loss of 4 of 12", got)
		}
		w.wantHealthy()
	})
}

// TestLossesAddUp loses one after the other and shows that those of one Liveness count together.
func TestLossesAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := dyingFleet(t, 5, 2) // with the canary 2 of 6 may be lost
		defer w.stop()
		third, cancel := newContext(t)
		w.live(third, "x", 0, beat)
		w.after(11 * time.Second)
		cancel()
		w.after(42 * time.Second) // m0 and m1 are quiet since 10 s and 11 s, x since 29 s; it is 72 s
		if got := w.told(); lefts(got) != 0 || w.view.Freshness().Held != 2 {
			t.Errorf("%d have left and %d are held, want 3 of 7 held back or still to come: %q", lefts(got), w.view.Freshness().Held, got)
		}
	})
}

// TestOneMayAlwaysBeLost shows that the brake does not keep the only peer, and none with a share of 1.
func TestOneMayAlwaysBeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := dyingFleet(t, 1, 1)
		defer w.stop()
		w.after(45 * time.Second)
		w.wantState("m0", identity.Lost)
	})
	synctest.Test(t, func(t *testing.T) {
		w := dyingFleet(t, 9, 9, func(c *identity.ViewConfig) { c.MassLoss = 1 })
		defer w.stop()
		w.after(55 * time.Second)
		if n := lefts(w.told()); n != 9 {
			t.Errorf("%d have left, want all 9 without a brake", n)
		}
	})
}

// TestSecondLossWaitsForTheFirst shows that where one may be lost, the next one is a Liveness later.
func TestSecondLossWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(c *identity.ViewConfig) { c.Suspect = 38 * time.Second })
		defer w.stop()
		w.write("a", "a")
		w.after(15 * time.Second)
		w.write("b", "b")
		w.after(37 * time.Second)
		w.wantTold("the first", "0s Joined a", "15s Joined b", "38s Suspected a", "50s Left a Quiet")
		w.after(20 * time.Second)
		w.wantState("b", identity.Suspect)
		w.wantSick("the second", "1 held back by the mass-loss brake")
		w.after(20 * time.Second)
		w.wantTold("the second", "53s Suspected b", "90s Left b Quiet")
	})
}
