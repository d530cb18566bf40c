// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"testing"
	"time"
)

// asker is a node whose pods are all held back by their budgets.
type asker struct {
	name  string
	pods  int
	back  time.Time
	looks int
}

// look is one pass over it. It reports how many pods it has asked about.
func (a *asker) look(f *sched) (asked int) {
	a.looks++
	f.s.want(a.name, demand{remaining: a.pods, since: simStart, asks: a.pods})
	for a.pods > 0 {
		ticket, r := f.s.takeAsk(a.name, f.pod(fmt.Sprint(a.name, "-", a.pods)))
		if r != nil {
			a.back = f.clock.Add(r.after)
			return asked
		}
		ticket.done(Answer{Verdict: verdictBudgetExhausted})
		asked++
		a.pods--
	}
	return asked
}

// Blocked nodes take turns to ask about their pods: they use the rate that is free, and none looks again and again
// only to find that others have used it.
func TestBlockedNodesTakeTurnsToAsk(t *testing.T) {
	for _, nodes := range []int{100, 400} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) { takeTurns(t, nodes) })
	}
}

// takeTurns has so many blocked nodes ask about their pods. The turn of the last may be many minutes ahead.
func takeTurns(t *testing.T, nodes int) {
	t.Helper()
	const pods = 30
	f := newSched(t, SchedulerOptions{})
	var askers []*asker
	for i := range nodes {
		askers = append(askers, &asker{name: fmt.Sprint("node-", i), pods: pods, back: f.clock})
	}
	begin, left, looks := f.clock, nodes*pods, 0
	for left > 0 && f.clock.Sub(begin) < time.Hour {
		for _, a := range askers {
			if a.pods > 0 && !f.clock.Before(a.back) {
				left -= a.look(f)
			}
		}
		f.pass(50 * time.Millisecond)
	}
	for _, a := range askers {
		looks += a.looks
	}
	ideal := time.Duration(float64(nodes*pods) / f.s.o.Rate * float64(time.Second))
	if took := f.clock.Sub(begin); took > ideal*5/4 {
		t.Errorf("got %v until all of %d pods were asked about, want at most %v", took, nodes*pods, ideal*5/4)
	}
	if most := 3 + int(ideal/schedLongest); looks > most*nodes {
		t.Errorf("got %d looks at %d nodes, want at most %d at each", looks, nodes, most)
	}
}

// Pods that can leave keep their half of the rate, whatever is asked beside them.
func TestAskingLeavesHalfOfTheRate(t *testing.T) {
	f := newSched(t, SchedulerOptions{Rate: 20, Burst: 40})
	a := &asker{name: "blocked", pods: 100}
	if asked := a.look(f); asked != 20 {
		t.Errorf("got %d pods asked about at once, want half of the burst of 40", asked)
	}
	for i := range 20 {
		f.takenFree("leaving", fmt.Sprint("p", i))
	}
	if left := a.back.Sub(f.clock); left < askShortest {
		t.Errorf("got a turn after %v, want at least %v", left, askShortest)
	}
}
