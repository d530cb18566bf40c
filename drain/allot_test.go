// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestUnitsGoToTheNodeWithTheFewestPodsLeft(t *testing.T) {
	old, young := simStart, simStart.Add(time.Minute)
	claims := []claim{
		{node: "big", remaining: 30, since: old, units: 10},
		{node: "young", remaining: 3, since: young, units: 3},
		{node: "b", remaining: 3, since: old, units: 2},
		{node: "a", remaining: 3, since: old, units: 1},
		{node: "idle", remaining: 1, since: old, units: 0},
	}
	for _, c := range []struct {
		units int
		want  map[string]int
	}{
		{units: -1, want: map[string]int{}},
		{units: 0, want: map[string]int{}},
		{units: 1, want: map[string]int{"a": 1}},
		{units: 3, want: map[string]int{"a": 1, "b": 2}},
		{units: 5, want: map[string]int{"a": 1, "b": 2, "young": 2}},
		{units: 9, want: map[string]int{"a": 1, "b": 2, "young": 3, "big": 3}},
		{units: 99, want: map[string]int{"a": 1, "b": 2, "young": 3, "big": 10}},
	} {
		for _, mine := range claims {
			if got, _ := allot(slices.Values(claims), mine, c.units); got != c.want[mine.node] {
				t.Errorf("of %d units %q got %d, want %d", c.units, mine.node, got, c.want[mine.node])
			}
		}
	}
}

// All that can be handed out is handed out, once, whatever the claims.
func TestUnitsAreHandedOutOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		var claims []claim
		wanted := 0
		for i := range r.IntN(8) {
			c := claim{node: fmt.Sprint(i), remaining: r.IntN(3), since: simStart.Add(time.Duration(r.IntN(2))), units: r.IntN(4)}
			claims, wanted = append(claims, c), wanted+c.units
		}
		units, sum := r.IntN(12), 0
		for _, c := range claims {
			got, before := allot(slices.Values(claims), c, units)
			sum += got
			for _, d := range claims {
				if behind, _ := allot(slices.Values(claims), d, units); behind > 0 && got < c.units && c.compare(d) < 0 {
					t.Fatalf("%v of %d units: %q got some, %q before it not all", claims, units, d.node, c.node)
				}
			}
			if before < 0 || before+c.units > wanted {
				t.Fatalf("%v: got %d wanted before %q, want no more than all others want", claims, before, c.node)
			}
		}
		if want := min(units, wanted); sum != want {
			t.Fatalf("%v: got %d of %d units handed out, want %d", claims, sum, units, want)
		}
	}
}

// A budget's units are kept for the nodes that come first, as long as these want them.
func TestBudgetIsSharedByTheFewestPodsLeft(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	f.observe("1", 2)
	f.want("big", 30, 5)
	f.want("small", 2, 2)
	f.refused("big", "p1", BudgetExhausted)
	first := f.taken("small", "p2")
	f.refused("big", "p1", BudgetExhausted)
	f.pass(slowEviction) // so that the next one need not wait for it
	f.taken("small", "p3")
	f.refused("big", "p1", BudgetExhausted)
	first.done(Answer{Verdict: verdictForbidden})
	f.pass(slowEviction)
	f.taken("big", "p1")
	f.refused("small", "p2", BudgetExhausted)
}

func TestDemandThatIsNotRefreshedNoLongerCounts(t *testing.T) {
	for name, pass := range map[string]func(f *sched){
		"forgotten":  func(f *sched) { f.s.forget("small") },
		"wants none": func(f *sched) { f.want("small", 2, 0) },
		"not refreshed": func(f *sched) {
			f.pass(time.Minute - time.Second)
			f.want("big", 30, 5) // with a sweep just before
			f.pass(time.Second)
		},
		"has more to do":  func(f *sched) { f.want("small", 31, 2) },
		"budget has room": func(f *sched) { f.observe("2", 3) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newSched(t, SchedulerOptions{})
			f.observe("1", 2)
			f.want("small", 2, 2)
			f.want("big", 30, 5)
			f.pass(time.Minute - time.Millisecond)
			f.want("big", 30, 5)
			f.refused("big", "p1", BudgetExhausted)
			f.s.want("small", demand{remaining: 2, since: simStart, budgets: map[types.NamespacedName]int{f.budget: 2}})
			f.want("big", 30, 5)
			f.refused("big", "p1", BudgetExhausted)
			pass(f)
			f.taken("big", "p1")
		})
	}
}

func TestNodeWithoutDemandComesLast(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	f.observe("1", 2)
	f.want("big", 30, 2)
	f.refused("unknown", "p1", BudgetExhausted)
	f.observe("2", 3)
	f.taken("unknown", "p1")
}

// The rate goes to the nodes with the fewest pods left, too.
func TestRateIsSharedByTheFewestPodsLeft(t *testing.T) {
	f := newSched(t, SchedulerOptions{Rate: 1, Burst: 1})
	f.want("big", 30, 0)
	f.want("small", 2, 0)
	f.takenFree("x", "p0").done(Answer{Verdict: verdictAccepted})
	if r := f.refusedFree("big", "p1", WaitingForRate); r.after != time.Second {
		t.Errorf("got %v until the node may ask again, want 1 s", r.after)
	}
	f.refusedFree("small", "p2", WaitingForRate)
	if r := f.refusedFree("big", "p1", WaitingForRate); r.after != 2*time.Second {
		t.Errorf("got %v until the node may ask again, want 2 s, behind one that comes first", r.after)
	}
	f.pass(time.Second)
	f.refusedFree("big", "p1", WaitingForRate)
	f.takenFree("small", "p2").done(Answer{Verdict: verdictAccepted})
	f.pass(time.Second)
	f.takenFree("big", "p1")
}

// What comes free goes to the node with the fewest pods left, although another one asks first.
func TestUnitThatComesFreeIsKept(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	f.observe("1", 0)
	f.want("small", 2, 2)
	f.want("big", 30, 30)
	f.refused("small", "p1", BudgetExhausted)
	f.observe("2", 1)
	f.refused("big", "p2", BudgetExhausted)
	f.taken("small", "p1")
}

// A node that does not come back for its place loses it.
func TestPlaceInTheQueueIsKeptOnlyForAWhile(t *testing.T) {
	for name, pass := range map[string]func(f *sched){
		"late":       func(f *sched) { f.pass(time.Second + waitGrace + time.Millisecond) },
		"forgotten":  func(f *sched) { f.pass(time.Second); f.s.forget("small") },
		"wants none": func(f *sched) { f.pass(time.Second); f.want("small", 2, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newSched(t, SchedulerOptions{Rate: 1, Burst: 1})
			f.want("big", 30, 0)
			f.want("small", 2, 0)
			f.takenFree("x", "p0").done(Answer{Verdict: verdictAccepted})
			f.refusedFree("small", "p2", WaitingForRate)
			pass(f)
			f.takenFree("big", "p1")
		})
	}
}

// However many small nodes come, the big one is served in the end.
func TestNobodyStarvesForTheRate(t *testing.T) {
	f := newSched(t, SchedulerOptions{Rate: 1, Burst: 1})
	f.want("big", 30, 0)
	f.takenFree("x", "p0").done(Answer{Verdict: verdictAccepted})
	f.refusedFree("big", "p1", WaitingForRate)
	var waiting []string
	for i := range 40 {
		f.pass(time.Second)
		waiting = append(waiting, fmt.Sprintf("a%03d", i), fmt.Sprintf("b%03d", i)) // more than there is rate for
		for _, node := range waiting {
			f.want(node, 1, 0)
			if ticket, _ := f.s.take(node, f.pod(node), types.NamespacedName{}); ticket != nil {
				ticket.done(Answer{Verdict: verdictAccepted})
				f.s.forget(node)
				waiting = slices.DeleteFunc(waiting, func(n string) bool { return n == node })
				break
			}
		}
		f.want("big", 30, 0)
		if ticket, _ := f.s.take("big", f.pod("p1"), types.NamespacedName{}); ticket != nil {
			if i < fairTurn-2 {
				t.Errorf("the big node was served in turn %d, before smaller ones", i)
			}
			return
		}
	}
	t.Error("the big node was not served in 40 turns")
}

// A pod that asks again and again is one that waits: others must not be told to wait for all those times.
func TestAskingOftenDoesNotLengthenTheQueue(t *testing.T) {
	f := newSched(t, SchedulerOptions{Rate: 1, Burst: 1})
	f.want("small", 2, 0)
	f.want("big", 30, 0)
	f.takenFree("x", "p0").done(Answer{Verdict: verdictAccepted})
	for range 50 {
		f.refusedFree("small", "p1", WaitingForRate)
	}
	if r := f.refusedFree("big", "p2", WaitingForRate); r.after != 3*time.Second {
		t.Errorf("got %v until the node may ask again, want 3 s, behind the two pods of the other", r.after)
	}
}
