// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Never forgotten too early: what was accepted is spent until the status has it.
func TestAcceptedIsSpentUntilTheStatusShowsIt(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	f.observe("1", 1)
	f.accepted("n", "p1")
	f.spent(1)
	f.refused("n", "p2", BudgetExhausted)
	f.observe("2", 1, "other") // a change, but not this one: the watch is behind
	f.spent(1)
	f.refused("n", "p2", BudgetExhausted)
	f.observe("3", 0, "p1", "other")
	f.spent(0)
	f.observe("4", 1)
	f.taken("n", "p2")
}

// Never counted twice: the watch may be faster than the answer.
func TestStatusMayShowItBeforeTheAnswer(t *testing.T) {
	for _, v := range []Verdict{verdictAccepted, verdictUnknown} {
		f := newSched(t, SchedulerOptions{})
		f.observe("1", 2)
		ticket := f.taken("n", "p1")
		f.observe("2", 1, "p1") // one is left, beside the one in flight
		f.taken("n", "p2")
		f.refused("n", "p3", BudgetExhausted)
		ticket.done(Answer{Verdict: v})
		f.spent(0)
	}
}

// A pod of a StatefulSet has the name of the one before it, whose entry may still be there.
func TestEntryOfAnEarlierPodShowsNothing(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	f.observe("1", 2, "web-0")
	f.accepted("n", "web-0")
	f.spent(1)
	f.observe("2", 2, "web-0")
	f.spent(1)
	entries := map[string]time.Time{"web-0": simStart.Add(7 * time.Second)}
	f.s.observe([]*policyv1.PodDisruptionBudget{f.state("3", 1, entries)})
	f.spent(0)
}

// The controller drops the entry as soon as it sees the pod terminating, so that it may never be seen. Then it takes a later
// status, and the pod on its way out.
func TestEntryMayNeverBeSeen(t *testing.T) {
	for _, c := range []struct {
		name   string
		events func(f *sched)
		want   int
	}{
		{"nothing", func(*sched) {}, 1},
		{"only time", func(f *sched) { f.pass(unitForget - time.Millisecond) }, 1},
		{"too much time", func(f *sched) { f.pass(unitForget) }, 0},
		{"a change", func(f *sched) { f.observe("2", 9); f.pass(20 * time.Second); f.observe("3", 9) }, 1},
		{"the pod left", func(f *sched) { f.s.left(f.pod("p1")); f.pass(20 * time.Second); f.observe("1", 9) }, 1},
		{"another pod left", func(f *sched) { f.s.left(f.pod("p2")); f.pass(20 * time.Second); f.observe("2", 9) }, 1},
		{"a pod of that name left", func(f *sched) {
			f.s.left(PodRef{Namespace: "ns", Name: "p1", UID: "older"})
			f.pass(20 * time.Second)
			f.observe("2", 9)
		}, 1},
		{"left, then a change, at once", func(f *sched) { f.s.left(f.pod("p1")); f.observe("2", 9) }, 1},
		{"left, then a change, and the cache was not asked since", func(f *sched) {
			f.s.left(f.pod("p1"))
			f.observe("2", 9)
			f.pass(unitConfirm)
		}, 1},
		{"left, then a change, and the cache was asked a second later", func(f *sched) {
			f.s.left(f.pod("p1"))
			f.observe("2", 9)
			f.pass(unitConfirm)
			f.observe("2", 9)
		}, 0},
		{"a change, then left", func(f *sched) {
			f.observe("2", 9)
			f.s.left(f.pod("p1"))
			f.pass(unitConfirm)
			f.observe("2", 9)
		}, 1},
		{"a change, then left, and the cache was not asked since", func(f *sched) {
			f.observe("2", 9)
			f.s.left(f.pod("p1"))
			f.pass(unitTrust)
		}, 1},
		{"a change, then left, and the cache was asked much later", func(f *sched) {
			f.observe("2", 9)
			f.s.left(f.pod("p1"))
			f.pass(unitTrust)
			f.observe("2", 9)
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newSched(t, SchedulerOptions{})
			f.observe("1", 10)
			f.accepted("n", "p1")
			c.events(f)
			f.spent(c.want)
		})
	}
}

// A pod may be seen terminating before its eviction is answered.
func TestPodMayLeaveBeforeTheAnswer(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	f.observe("1", 10)
	ticket := f.taken("n", "p1")
	f.s.left(f.pod("p1"))
	f.observe("2", 9)
	ticket.done(Answer{Verdict: verdictAccepted})
	f.spent(1)
	f.pass(unitConfirm)
	f.observe("2", 9)
	f.spent(0)
}

// An eviction without an answer may have been accepted. The server charges the budget before it finds that the UID is another.
func TestWhatMayHaveBeenAcceptedIsSpent(t *testing.T) {
	for _, v := range []Verdict{verdictUnknown, verdictReplaced} {
		f := newSched(t, SchedulerOptions{})
		f.observe("1", 1)
		f.taken("n", "p1").done(Answer{Verdict: v})
		f.spent(1)
		f.refused("n", "p2", BudgetExhausted)
		f.pass(unitForget - time.Millisecond)
		f.spent(1)
		f.pass(time.Millisecond)
		f.spent(0)
		f.taken("n", "p2")
	}
}

// A pod takes one unit, however often it is asked.
func TestPodThatIsAskedAgainIsCountedOnce(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	f.observe("1", 1)
	f.taken("n", "p1").done(Answer{Verdict: verdictUnknown})
	f.refused("n", "p2", BudgetExhausted)
	again := f.taken("n", "p1")
	f.spent(1)
	f.observe("2", 2)
	f.taken("n", "p2")
	f.refused("n", "p3", BudgetExhausted)
	again.done(Answer{Verdict: verdictForbidden})
	f.spent(1) // the first may still have been accepted
	f.pass(unitForget)
	f.spent(0)
}

func TestPodMayComeUnderAnotherBudget(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	other := f.state("2", 1, nil)
	other.Name = "other"
	f.s.observe([]*policyv1.PodDisruptionBudget{f.state("1", 1, nil), other})
	f.taken("n", "p1").done(Answer{Verdict: verdictUnknown})
	key := types.NamespacedName{Namespace: "ns", Name: "other"}
	f.got(f.s.take("n", f.pod("p1"), key)).done(Answer{Verdict: verdictAccepted})
	if got := f.s.spent(); len(got) != 1 || got[key] != 1 {
		t.Errorf("got %v spent, want 1 under %v", got, key)
	}
}
