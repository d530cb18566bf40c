// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// R-MA-02: the controllers are killed before and after each of their calls, or frozen before it, while a sick machine is mended by a reboot, falls ill again, is rebooted
// in vain, and is replaced. Each time there is one reboot, and one replacement; the other machine works all the time, and in the end no slot is held.
func TestKilledWhileAMachineIsMended(t *testing.T) { matrix(t, mended, ofHealth) }

// ofHealth are the calls of health checks.
func ofHealth(call string) bool {
	return slices.Contains([]string{"PutCheckStatus", "Annotate", "DeleteMachine", "Reboot", "TakeSlot", "FreeSlot"}, call)
}

func mended(w *world) []string {
	g := grouped(w)
	w.budget.limit = 1
	g.pool(2)
	g.ceiling, g.floor, g.most = 2, 1, 1
	w.begin()
	g.watch("check")
	first := g.now().Machines[0]
	g.ail(first, false)
	g.until("mended", func() bool { return g.well(2) })
	_, there := w.store.Live(w.t.Context(), first.Key)
	tale := []string{fmt.Sprint("mended: ", len(g.reboots), " reboots, the machine is gone: ", there != nil)}
	g.ail(first, true)
	g.until("replaced", func() bool { return g.well(2) })
	tale = append(tale, fmt.Sprint("replaced: ", len(g.reboots), " reboots, ", len(w.cloud.Instances()), " instances"))
	for _, m := range g.now().Machines {
		tale = append(tale, fmt.Sprint(m.UID == first.UID, " lineage ", m.Annotations[machine.LineageAnnotation]))
	}
	w.enough()
	g.empty()
	return w.over(tale)
}

// R-MA-29: with a budget of one, of ten machines of which three are sick, and which two health checks look after, one is rebooted or replaced at a time: the slots show
// it, all are mended in the end, and nothing is left. So it is when the controllers are killed around any call of it.
func TestRemediesAreOnTheBudget(t *testing.T) {
	for name, lender := range map[string]func(*world) controller.Budget{
		"a budget":                     func(w *world) controller.Budget { return w.budget },
		"one that knows what is left":  func(w *world) controller.Budget { return leftBudget{w.budget} },
		"none but that of the machine": func(*world) controller.Budget { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			synctest.Test(t, func(t *testing.T) { calls = epidemic(t, lender, -1) })
			step, done := raceshare.Step(t), 0
			for at := 0; at < 2*len(calls) && !t.Failed(); at++ {
				if !ofHealth(calls[at/2]) {
					continue
				}
				if done++; done%step == 0 {
					synctest.Test(t, func(t *testing.T) { epidemic(t, lender, at) })
				}
			}
			t.Logf("killed at %d of %d half-calls", done/step, 2*len(calls))
		})
	}
}

// epidemic has three machines of ten fall ill. It returns the calls until all are well.
func epidemic(t *testing.T, lender func(*world) controller.Budget, kill int) []string {
	w := newWorld(t)
	g := grouped(w)
	w.budget.limit = 1
	g.lender = lender(w)
	w.start()
	g.pool(10)
	g.most, g.ceiling = 1, 10
	w.begin()
	w.kill = kill
	g.watch("a")
	g.watch("b")
	all := g.now().Machines
	g.ail(all[2], false)
	g.ail(all[4], true)
	g.ail(all[7], false)
	g.until("mended", func() bool { return g.well(10) })
	calls := w.trace
	if _, err := w.store.Live(t.Context(), all[4].Key); err == nil || len(g.reboots) != 3 {
		t.Errorf("R-MA-29: after %d reboots, want 3, the machine that they don't help: %v", len(g.reboots), err)
	}
	if len(w.budget.held) > 0 {
		t.Errorf("R-MA-29: all are well, and slots are held: %v", w.budget.held)
	}
	if !g.heard("Reboot waits for the disruption budget") {
		t.Errorf("R-MA-29: nobody was told what the others wait for: %q", g.said)
	}
	g.empty()
	w.clean()
	if t.Failed() {
		t.Logf("killed at %d, the calls were %v", kill, w.trace)
	}
	return calls
}

// R-MA-29: a slot of a health check that is deleted, or of a process that died before it could say what for, is given back; that of a remedy under way is not, neither by
// the machine's own controller.
func TestSlotsOfNobodyAreGivenBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		g := grouped(w)
		g.pool(2)
		m := g.now().Machines[0]
		passes := func() {
			for range 5 {
				g.pass()
				<-time.After(10 * time.Second)
			}
		}
		w.budget.held[m.UID] = "remedy-of-the-dead"
		w.start()
		if passes(); len(w.budget.held) != 0 {
			t.Errorf("R-MA-29: what nobody needs is held: %v", w.budget.held)
		}
		g.watch("check")
		g.ail(m, true)
		g.until("under way", func() bool { return len(g.attempts()) == 1 })
		w.start()
		if g.pass(); w.budget.held[m.UID] == "" {
			t.Error("R-MA-29: the machine's own controller has given a remedy's slot back")
		}
		delete(w.budget.held, m.UID)
		if passes(); w.budget.held[m.UID] == "" || w.budget.held[m.UID] != g.checks["check"].Status.Attempts[0].Loan() {
			t.Errorf("R-MA-29: a remedy is under way, and slots are %v", w.budget.held)
		}
		delete(g.checks, "check")
		if passes(); len(w.budget.held) != 0 {
			t.Errorf("R-MA-29: the check is deleted, and slots are held: %v", w.budget.held)
		}
		g.empty()
		w.clean()
	})
}

// R-MA-29: no cache says that a slot is not needed any more: not that the machine has been healthy for long enough, nor that no check has anything on record.
func TestStaleCacheKeepsTheRemedysSlot(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		g := grouped(w)
		g.pool(2)
		g.watch("check")
		m := g.now().Machines[0]
		before := g.now()
		g.ail(m, false)
		recovers := func() bool {
			all := g.checks["check"].Status.Attempts
			return len(all) == 1 && !all[0].Healthy.IsZero()
		}
		g.until("it recovers", recovers)
		g.freeze()
		g.ail(m, false)
		g.pass()
		delete(g.sick, m.Token)
		if <-time.After(5 * time.Minute); recovers() {
			t.Error("it was not seen to fall ill again")
		}
		if g.pass(); w.budget.held[m.UID] == "" || !recovers() {
			t.Errorf("R-MA-29: it has been healthy for no time, and slots are %v", w.budget.held)
		}
		g.stale = &before
		w.start()
		calls := len(w.trace)
		if g.pass(); w.budget.held[m.UID] == "" || slices.Contains(w.trace[calls:], "FreeSlot") {
			t.Errorf("R-MA-29: it recovers, and slots are %v after %v", w.budget.held, w.trace[calls:])
		}
		g.stale = nil
		g.until("mended", func() bool { return g.well(2) })
		g.empty()
		w.clean()
	})
}

// R-MA-29: of two checks that look after a machine, one mends it, though the budget would let both.
func TestTwoChecksMendOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		g := grouped(w)
		g.lender = leftBudget{w.budget}
		w.start()
		g.pool(2)
		g.watch("a")
		g.watch("b")
		g.ail(g.now().Machines[0], false)
		g.until("mended", func() bool { return g.well(2) })
		if len(g.reboots) != 1 || !g.heard("the Reboot of another health check") {
			t.Errorf("R-MA-29: %d reboots, want 1; what was said is %q", len(g.reboots), g.said)
		}
		g.empty()
		w.clean()
	})
}

// R-MA-29: a remedy does not take the slot of a change that its machine makes, and waits for that of another machine; nothing of it is on record before.
func TestRemedyWaitsForTheMachinesOwnChange(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		g := grouped(w)
		g.pool(2)
		m := g.now().Machines[0]
		g.pass()
		w.budget.limit = 1
		g.watch("check")
		g.ail(m, false)
		for holder, why := range map[string]string{m.UID: "a change of its own", "uid-of-another": "1 of 1 are disturbed"} {
			w.budget.held = map[string]string{holder: "7-of-its-own"}
			for range 30 {
				if _, err := w.group.Reconcile(t.Context(), "fleet"); err != nil {
					t.Fatal(err)
				}
				<-time.After(10 * time.Second)
			}
			if w.budget.held[holder] != "7-of-its-own" || len(g.reboots)+len(g.attempts()) != 0 || !g.heard(why) {
				t.Errorf("R-MA-29: slots are %v, %d reboots, attempts %v, and what was said is %q", w.budget.held, len(g.reboots), g.attempts(), g.said)
			}
		}
		clear(w.budget.held)
		g.until("mended", func() bool { return g.well(2) })
		g.empty()
		w.clean()
	})
}
