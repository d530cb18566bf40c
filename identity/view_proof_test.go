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
