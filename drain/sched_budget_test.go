// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

// In flight under a budget is never more than it allows, nor more than PerBudget (R-DR-02).
func TestBudgetBoundsWhatIsInFlight(t *testing.T) {
	f := newSched(t, SchedulerOptions{PerBudget: 2})
	f.refused("n", "p0", BudgetExhausted) // not known yet
	f.observe("1", 0)
	if r := f.refused("n", "p0", BudgetExhausted); !strings.Contains(r.message, `"ns/web"`) || !strings.Contains(r.message, "3 of its pods") {
		t.Errorf("got message %q, want the budget, and how many pods are healthy and have to be", r.message)
	}
	f.observe("2", 1)
	one := f.taken("n", "p1")
	f.refused("n", "p2", BudgetExhausted)
	f.observe("3", 9)
	two := f.taken("n", "p2")
	f.refused("n", "p3", WaitingForRate)
	one.done(Answer{Verdict: verdictAccepted})
	f.taken("n", "p3")
	f.refused("n", "p4", WaitingForRate)
	two.done(Answer{Verdict: verdictGone})
	two.done(Answer{Verdict: verdictGone}) // the second call must not free another slot
	f.taken("n", "p4")
	f.refused("n", "p5", WaitingForRate)
	f.takenFree("n", "p6") // no budget, no bound
}

// Few evictions under a budget go one after the other, over all nodes, as the server sleeps where two meet; many go some at once, and none waits for one
// that is slow (R-DR-19).
func TestEvictionsDoNotMeetAtABudget(t *testing.T) {
	for _, c := range []struct{ units, other, allowed, want int }{
		{1, 0, 500, 1}, {16, 0, 500, 1}, {20, 0, 500, 2}, {8, 12, 500, 2}, {110, 0, 500, 7}, {300, 200, 500, 16}, {500, 0, 5, 1}, {500, 0, 40, 3},
	} {
		f := newSched(t, SchedulerOptions{})
		f.observe("1", int32(c.allowed))
		f.want("n", c.units, c.units)
		f.want("other", c.units+1, c.other)
		var first *ticket
		for i := range c.want {
			if ticket := f.taken("n", fmt.Sprint(i)); i == 0 {
				first = ticket
			}
		}
		if c.units == c.want {
			continue
		}
		if r := f.refused("n", "x", WaitingForRate); c.want < 16 && r.after != schedShortest {
			t.Errorf("%+v: got %v until it is asked again, want %v", c, r.after, schedShortest)
		}
		first.done(Answer{Verdict: verdictAccepted})
		f.taken("n", "x")
		f.refused("n", "y", WaitingForRate)
		if f.pass(slowEviction); c.want < 16 {
			f.taken("n", "y")
		}
	}
}

func TestPodIsNotEvictedTwiceAtOnce(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	f.observe("1", 9)
	f.taken("n", "p1")
	f.refused("other-holder", "p1", WaitingForRate)
	f.takenFree("n", "p2")
	f.refusedFree("n", "p2", WaitingForRate)
}

func TestWaitForABudgetGrowsWithItsSilence(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	f.observe("1", 0)
	for _, c := range []struct{ silent, want time.Duration }{
		{0, 10 * time.Second}, {20 * time.Second, 20 * time.Second}, {70 * time.Second, 70 * time.Second}, {9 * time.Minute, 2 * time.Minute},
	} {
		f.clock = simStart.Add(c.silent)
		if r := f.refused("n", "p1", BudgetExhausted); r.after != c.want {
			t.Errorf("silent for %v: got %v until it is asked again, want %v", c.silent, r.after, c.want)
		}
	}
	f.observe("2", 0)
	if r := f.refused("n", "p1", BudgetExhausted); r.after != 10*time.Second {
		t.Errorf("after a change: got %v until it is asked again, want 10 s", r.after)
	}
}

// A status that is older than the spec is known without asking.
func TestStaleBudgetIsNotAsked(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	b := f.state("1", 5, nil)
	b.Generation, b.Status.ObservedGeneration = 2, 1
	f.s.observe([]*policyv1.PodDisruptionBudget{b})
	f.refused("n", "p1", BudgetStale)
}

// Passes run at the same time: one may have read its cache before another, and come later.
func TestOlderStateOfABudgetIsIgnored(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	f.observe("100", 0)
	f.observe("99", 5)
	f.refused("n", "p1", BudgetExhausted)
	f.pass(versionKept - time.Second)
	f.observe("100", 0)
	f.pass(versionKept - time.Second)
	f.observe("99", 5)
	f.refused("n", "p1", BudgetExhausted)
	f.pass(time.Second)
	f.observe("99", 5) // nobody has seen 100 for a while: the server has an older state again
	f.taken("n", "p1")
}

// The server's refusals close the budget until it changes, or a fall-back has passed; then one eviction tries.
func TestRefusalClosesTheBudget(t *testing.T) {
	for _, c := range []struct {
		answer Answer
		want   Reason
		after  time.Duration
	}{
		{Answer{Verdict: verdictBudgetExhausted}, BudgetExhausted, 10 * time.Second},
		{Answer{Verdict: verdictBudgetContended}, BudgetContended, 10 * time.Second},
		{Answer{Verdict: verdictBudgetStale, RetryAfter: 10 * time.Second}, BudgetStale, 10 * time.Second},
		{Answer{Verdict: verdictBudgetStale, RetryAfter: 25 * time.Second}, BudgetStale, 25 * time.Second},
	} {
		t.Run(string(c.want)+c.after.String(), func(t *testing.T) {
			f := newSched(t, SchedulerOptions{})
			f.observe("1", 9)
			f.taken("n", "p1").done(c.answer)
			f.spent(0)
			if r := f.refused("n", "p1", c.want); r.after != c.after {
				t.Errorf("got %v until it is asked again, want %v", r.after, c.after)
			}
			f.takenFree("n", "free") // others are not concerned
			f.pass(c.after - time.Millisecond)
			f.observe("1", 9) // the same as before
			f.refused("n", "p1", c.want)
			f.pass(time.Millisecond)
			f.taken("n", "p1").done(c.answer)
			if r := f.refused("n", "p1", c.want); r.after < 20*time.Second {
				t.Errorf("second refusal: got %v until it is asked again, want at least 20 s", r.after)
			}
			f.observe("2", 9)
			one := f.taken("n", "p1")
			f.refused("n", "p2", c.want) // one at a time
			one.done(Answer{Verdict: verdictAccepted})
			f.taken("n", "p2")
		})
	}
}

// Twelve pods that are refused together are one refusal, not twelve doublings and none of them holds a slot.
func TestRefusalsOfOneRoundCountOnce(t *testing.T) {
	f := newSched(t, SchedulerOptions{InFlight: 12})
	f.observe("1", 12)
	var tickets []*ticket
	for _, p := range strings.Split("abcdefghijkl", "") {
		tickets = append(tickets, f.taken("n", p))
	}
	for _, ticket := range tickets {
		ticket.done(Answer{Verdict: verdictBudgetExhausted})
	}
	if r := f.refused("n", "a", BudgetExhausted); r.after != 10*time.Second {
		t.Errorf("got %v until it is asked again, want 10 s", r.after)
	}
	for _, p := range strings.Split("abcdefghijkl", "") {
		f.takenFree("n", p+"-unguarded")
	}
}

// A refusal that was on its way while the budget changed says nothing of the new state: waiting for yet another change could be long.
func TestRefusalOfAnOlderStateDoesNotClose(t *testing.T) {
	for _, v := range []Verdict{verdictBudgetExhausted, verdictBudgetStale} {
		f := newSched(t, SchedulerOptions{})
		f.observe("1", 2)
		one, two := f.taken("n", "p1"), f.taken("n", "p2")
		f.observe("2", 2)
		one.done(Answer{Verdict: v, RetryAfter: 10 * time.Second})
		two.done(Answer{Verdict: v, RetryAfter: 10 * time.Second})
		f.taken("n", "p1")
	}
}

// A contended budget gets fewer evictions at once, and recovers by one with each that is accepted.
func TestContentionHalvesWhatIsInFlight(t *testing.T) {
	f := newSched(t, SchedulerOptions{PerBudget: 8})
	f.observe("1", 100)
	var tickets []*ticket
	for _, p := range strings.Split("abcdefgh", "") {
		tickets = append(tickets, f.taken("n", p))
	}
	for _, ticket := range tickets {
		ticket.done(Answer{Verdict: verdictBudgetContended})
	}
	f.observe("2", 100)
	f.accepted("n", "tries")
	for _, p := range strings.Split("ABCDE", "") { // 8 halved, once, and one recovered
		tickets = append(tickets, f.taken("n", p))
	}
	f.refused("n", "F", BudgetContended)
	for _, ticket := range tickets[len(tickets)-5:] {
		ticket.done(Answer{Verdict: verdictAccepted})
	}
	for _, p := range strings.Split("12345678", "") {
		f.taken("n", p)
	}
	f.refused("n", "9", WaitingForRate)
}

func TestContentionLeavesAtLeastOne(t *testing.T) {
	f := newSched(t, SchedulerOptions{PerBudget: 8})
	for i, version := range []string{"1", "2", "3", "4"} {
		f.observe(version, 100)
		f.taken("n", "p").done(Answer{Verdict: verdictBudgetContended})
		if got := f.s.budgets[f.budget].limit; got != 1 {
			t.Errorf("refusal %d: got a limit of %d, want 1: there was one in flight", i+1, got)
		}
	}
}

// What says nothing of the budget or the server frees the slot, and that is all.
func TestOtherAnswersFreeTheSlot(t *testing.T) {
	for _, v := range []Verdict{
		verdictGone, verdictMultipleBudgets, verdictNamespaceTerminating, verdictAdmissionDenied, verdictForbidden, verdictRejected,
	} {
		f := newSched(t, SchedulerOptions{InFlight: 1})
		f.observe("1", 1)
		for range 3 {
			f.taken("n", "p1").done(Answer{Verdict: v})
			f.spent(0)
		}
		f.taken("n", "p2")
	}
}

func TestBudgetsDoNotHinderEachOther(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	other := f.state("1", 1, nil)
	other.Name = "other"
	f.s.observe([]*policyv1.PodDisruptionBudget{f.state("1", 1, nil), other})
	f.taken("n", "p1").done(Answer{Verdict: verdictBudgetExhausted})
	f.refused("n", "p1", BudgetExhausted)
	f.got(f.s.take("n", f.pod("p2"), types.NamespacedName{Namespace: "ns", Name: "other"}))
}
