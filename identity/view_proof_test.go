// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/identity"
)

// knowing is a hub that says how far its informer has come.
type knowing struct{ *hub }

func (k knowing) LastSyncResourceVersion() string { return strconv.FormatInt(k.synced.Load(), 10) }

func (w *world) wantNoLoss(rule string) {
	w.t.Helper()
	if told := fmt.Sprint(w.told()); strings.Contains(told, "Left") {
		w.t.Errorf("%s: told %q, want nobody to leave", rule, told)
	}
}

// TestHolderThatRenewsLateIsNotLost has a member whose renewals are as far apart as its hold allows, and a watch that hangs just then: while the view
// still takes itself to be up to date, Liveness has passed since the last renewal that it saw. I6, R-ID-12.
func TestHolderThatRenewsLateIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		w.write("a", "a")
		w.after(20*time.Second + 200*time.Millisecond)
		w.renew(own)
		w.after(300 * time.Millisecond)
		w.set(cutWatch)
		w.after(50 * time.Millisecond)
		w.renew("a")
		w.after(10 * time.Second)
		w.renew("a")
		w.after(9*time.Second + 600*time.Millisecond) // it is 40.15 s
		w.wantHealthy()
		w.wantState("a", identity.Suspect)
		w.after(time.Second)
		w.relist()
		w.after(0)
		w.wantState("a", identity.Alive)
		w.wantNoLoss("it holds all the time")
	})
}

// TestListProvesNothingAmidIt has a list deliver the canary's write before older ones. When the Source says how far it has come makes no
// difference. I6, R-ID-12.
func TestListProvesNothingAmidIt(t *testing.T) {
	for _, says := range []string{"never", "before", "amid", "after"} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, func(c *identity.ViewConfig) {
					c.MassLoss = 1
					if says != "never" {
						c.Source = knowing{c.Source.(*hub)}
					}
				})
				defer w.stop()
				for _, name := range []string{"holds", "early", "late"} {
					w.write(name, name)
				}
				w.after(23 * time.Second)
				w.renew(own)
				w.after(time.Second)
				w.set(cutWatch)
				w.renew("holds")
				w.renew("early")
				w.after(16*time.Second + 500*time.Millisecond) // the canary has written at 30 s and 40 s
				w.renew("late")
				w.after(500 * time.Millisecond)
				w.wantHealthy()
				for i, name := range []string{own, "early", "late", "holds"} {
					if says == "before" && i == 0 || says == "amid" && i == 2 {
						w.synced.Store(int64(w.version))
					}
					w.listed(name)
				}
				w.set(func(h *hub) { h.cut = false; h.synced.Store(int64(h.version)) })
				w.wantNoLoss("its renewal of 24 s is in the list")
				w.wantHealthy()
				w.wantState("holds", identity.Alive)
			})
		})
	}
}

// TestLossIsToldInTime shows the bound: two of the canary's renewals, or one and the next write of any peer if the Source says how far it has come.
func TestLossIsToldInTime(t *testing.T) {
	for want, source := range map[string]func(*hub) identity.Source{
		"50s Left a Quiet": func(h *hub) identity.Source { return h },
		"42s Left a Quiet": func(h *hub) identity.Source { return knowing{h} },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, []string{"b"}, func(c *identity.ViewConfig) { c.Source = source(c.Source.(*hub)) })
			defer w.stop()
			w.live(w.ctx, "b", 2*time.Second, beat)
			w.write("a", "a")
			w.after(49 * time.Second)
			if want[0] == '5' {
				w.wantState("a", identity.Suspect)
			}
			w.after(2 * time.Second)
			w.wantTold("in time", "0s Joined a", "2s Joined b", "20s Suspected a", want)
		})
	}
}

// TestEditIsNoSignOfLife labels all Leases, of which most are of dead members. R-ID-12, R-ID-13.
func TestEditIsNoSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client, collector := collecting(t, []string{"unconfirmed", "lives"}, identity.CollectorConfig{})
		defer w.stop()
		w.write("lost", "lost")
		w.live(w.ctx, "lives", 0, beat)
		w.after(5 * time.Second)
		w.edit("unconfirmed")
		w.after(0)
		w.wantState("unconfirmed", identity.Unconfirmed)
		w.after(time.Hour - 6*time.Second)
		w.told()
		for _, name := range []string{"unconfirmed", "lost", "lives"} {
			w.edit(name)
		}
		w.after(time.Second)
		w.wantTold("an edit tells nothing")
		w.wantState("lost", identity.Lost)
		w.wantState("unconfirmed", identity.Lost)
		w.wantHealthy()
		w.after(time.Minute)
		if got := pass(t, collector); got != "" || len(client.asked) > 0 {
			t.Errorf("an edited Lease was collected: %q, want the hour to begin anew", got)
		}
		w.after(time.Hour)
		if got := pass(t, collector); got != "lost:Collected unconfirmed:Collected" && got != "unconfirmed:Collected lost:Collected" {
			t.Errorf("got %q, want both collected", got)
		}
	})
}

// hasty is a clock whose timers fire a little early, as those of a machine do whose clocks differ.
type hasty struct {
	ofBubble
	timers *int
}

func (c hasty) Timer(d time.Duration) (<-chan time.Time, func()) {
	if *c.timers++; *c.timers > 1000 { // so that the test ends
		return c.ofBubble.Timer(d)
	}
	return c.ofBubble.Timer(d - time.Microsecond)
}

// TestEarlyTimerDoesNotSpin counts the naps of a view.
func TestEarlyTimerDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timers := 0
		w := newWorld(t, nil, func(c *identity.ViewConfig) { c.Clock = hasty{c.Clock.(ofBubble), &timers} })
		w.write("a", "a")
		w.after(time.Minute)
		w.stop()
		if timers > 100 {
			t.Errorf("%d naps in a minute, want a few", timers)
		}
	})
}

// TestMetricSaysThatTheViewHasEnded shows that the gauge does not stay fresh.
func TestMetricSaysThatTheViewHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []bool
		w := newWorld(t, nil, func(c *identity.ViewConfig) { c.Metrics.Fresh = func(fresh bool) { told = append(told, fresh) } })
		w.after(time.Second)
		w.stop()
		if fmt.Sprint(told) != "[true false]" {
			t.Errorf("the metric was told %v, want fresh and then not", told)
		}
	})
}
