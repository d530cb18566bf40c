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

// newFleet is a world with living members m0, m1 and so on, which renew a second apart from each other.
func newFleet(t *testing.T, n int, changes ...func(*identity.ViewConfig)) *world {
	t.Helper()
	w := newWorld(t, nil, changes...)
	for i := range n {
		w.live(w.ctx, fmt.Sprint("m", i), time.Duration(i%9)*time.Second, beat)
	}
	w.after(15 * time.Second)
	if got := len(w.told()); got != n {
		t.Fatalf("%d joined, want %d", got, n)
	}
	return w
}

func (w *world) wantSick(rule, text string) {
	w.t.Helper()
	if err := w.view.Healthy(); err == nil || !strings.Contains(err.Error(), text) {
		w.t.Errorf("%s: Healthy is %v, want %q in it", rule, err, text)
	}
}

func (w *world) wantHealthy() {
	w.t.Helper()
	if err := w.view.Healthy(); err != nil || !w.view.Freshness().Fresh {
		w.t.Errorf("Healthy is %v, want nil", err)
	}
}

// TestNobodyIsLostWhileTheViewIsBlind stops the watch in several ways while all members live. I6, R-ID-12.
func TestNobodyIsLostWhileTheViewIsBlind(t *testing.T) {
	for _, c := range []struct {
		name       string
		begin, end func(h *hub)
	}{
		{"the watch hangs", cutWatch, func(h *hub) { go h.relist() }},
		{"the watch lags by more than a view may", func(h *hub) { h.lag = 25 * time.Second }, func(h *hub) { h.lag = 0 }},
		{"the canary does not know what it has written", func(h *hub) { h.silent, h.cut = true, true }, func(h *hub) { h.silent = false; go h.relist() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFleet(t, 9)
				defer w.stop()
				w.wantHealthy()
				w.set(c.begin)
				w.after(time.Hour)
				w.wantSick("blind", `the last write of its canary "members/me" that was seen is`)
				for _, event := range w.told() {
					if !strings.Contains(event, "Suspected") && !strings.Contains(event, "Recovered") {
						t.Errorf("blind, it told %q", event)
					}
				}
				w.set(c.end)
				w.after(25 * time.Second)
				w.wantHealthy()
				w.after(time.Minute)
				for _, event := range w.told() {
					if strings.Contains(event, "Left") || strings.Contains(event, "Joined") {
						t.Errorf("seeing again, it told %q", event)
					}
				}
				if got := len(w.view.Peers(identity.Alive)); got != 10 {
					t.Errorf("%d are alive, want all", got)
				}
			})
		})
	}
}

// TestSilentMemberIsNotLostWithoutProof shows that a canary which does not write stops the clock of all the others.
func TestSilentMemberIsNotLostWithoutProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		h.write("a", "a")
		config := identity.ViewConfig{Source: h, Canary: h, Clock: h.clock}
		view, err := identity.NewView(config)
		if err != nil {
			t.Fatal(err)
		}
		if f := view.Freshness(); f.Fresh || f.Age >= 0 {
			t.Errorf("before Run: got %+v, want no freshness", f)
		}
		w := newWorld(t, nil)
		defer w.stop()
		w.after(5 * time.Second)
		w.write("a", "a")
		w.set(func(h *hub) { h.silent = true })
		w.after(4 * time.Minute)
		w.wantTold("the canary was seen at 0 s only", "5s Joined a")
		w.wantState("a", identity.Alive)
		w.wantSick("the canary is silent", "is 4m5s old, want less than 20s")
	})
}

// TestOutageOfTheServerLosesNobody lets the server answer nobody for minutes. Members come back within an interval and the longest pause
// between two tries after it, the canary first: that is the worst case. R-ID-15.
func TestOutageOfTheServerLosesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		ctx, cancel := newContext(t)
		for i := range 9 {
			w.live(ctx, fmt.Sprint("m", i), time.Duration(i)*time.Second, beat)
		}
		w.after(9 * time.Second)
		w.told()
		cancel()
		w.set(func(h *hub) { h.down = true })
		w.after(5*time.Minute + time.Second)
		w.wantSick("outage", "want less than 20s")
		w.set(func(h *hub) { h.down = false })
		w.renew(own)
		w.after(17 * time.Second)
		w.wantHealthy()
		for i := range 9 {
			w.renew(fmt.Sprint("m", i))
		}
		w.after(time.Second)
		for _, event := range w.told() {
			if strings.Contains(event, "Left") || strings.Contains(event, "Joined") {
				t.Errorf("it told %q, want nobody to leave by an outage", event)
			}
		}
	})
}

// TestTimeOnTrustIsTakenBack shows that the time after the last write of the canary that was seen counts for nothing, if no other is seen
// while the view may trust it.
func TestTimeOnTrustIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		w.write("dead", "dead")
		w.after(10 * time.Second)
		quiet := func(want time.Duration) {
			t.Helper()
			if peer, _ := w.view.Get(keyTo("dead")); peer.Quiet != want {
				t.Errorf("at %v it is quiet for %v, want %v", w.clock.Elapsed(), peer.Quiet, want)
			}
		}
		w.set(cutWatch)
		w.after(19 * time.Second)
		quiet(29 * time.Second)
		w.after(21 * time.Second)
		quiet(10 * time.Second)
		w.relist()
		w.after(5 * time.Second)
		quiet(15 * time.Second)
		w.after(34 * time.Second)
		w.wantState("dead", identity.Suspect)
		w.after(2 * time.Second)
		w.wantState("dead", identity.Lost)
	})
}

// TestWatchMayBeFasterThanTheAnswer shows the canary's write before the canary knows that it has been made.
func TestWatchMayBeFasterThanTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		w.set(func(h *hub) { h.silent = true })
		w.after(30 * time.Second)
		w.wantSick("no answer", "is 30s old")
		w.after(400 * time.Millisecond)
		w.set(func(h *hub) { h.silent = false })
		w.after(50 * time.Millisecond)
		w.wantHealthy()
		if got := w.view.Freshness().Age; got != 450*time.Millisecond {
			t.Errorf("its age is %v, want it since the write was sent", got)
		}
	})
}

// TestForeignWritesToTheCanaryProveNothing has somebody else write to the canary's Lease.
func TestForeignWritesToTheCanaryProveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		w.set(func(h *hub) { h.silent = true }) // so the canary does not know of any
		for range 100 {
			w.after(5 * time.Second)
			w.write(own, "somebody")
		}
		w.wantSick("foreign writes", "want less than 20s")
	})
}
