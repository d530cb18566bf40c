// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestNewSchedulerRefusesWhatCannotBeMeant(t *testing.T) {
	for _, c := range []struct {
		o     SchedulerOptions
		field string
	}{
		{SchedulerOptions{Rate: -1}, "Rate"},
		{SchedulerOptions{Rate: math.NaN()}, "Rate"},
		{SchedulerOptions{Rate: math.Inf(1)}, "Rate"},
		{SchedulerOptions{Burst: -1}, "Burst"},
		{SchedulerOptions{InFlight: -7}, "InFlight"},
		{SchedulerOptions{PerBudget: -1}, "PerBudget"},
	} {
		if _, err := NewScheduler(c.o); err == nil || !strings.Contains(err.Error(), c.field+" is ") {
			t.Errorf("NewScheduler(%+v) = %v, want an error that names %s", c.o, err, c.field)
		}
	}
}

// The zero options are meant for production: none means "as fast as possible".
func TestZeroOptionsAreBounded(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	o := f.s.o
	if o.Rate != 20 || o.Burst != 40 || o.InFlight != 32 || o.PerBudget != 16 {
		t.Errorf("got %+v, want 20 a second, 40 at once, 32 in flight, 16 of a budget", o)
	}
}

func TestBurstThenRate(t *testing.T) {
	f := newSched(t, SchedulerOptions{Rate: 2, Burst: 3})
	next := 0
	count := func() int {
		for n := 0; ; n++ {
			next++
			ticket, r := f.s.take("n", f.pod(fmt.Sprint(next)), types.NamespacedName{})
			if r != nil {
				f.not(ticket, r, WaitingForRate)
				return n
			}
			ticket.done(Answer{Verdict: verdictAccepted})
		}
	}
	for _, c := range []struct {
		pass time.Duration
		want int
	}{{0, 3}, {499 * time.Millisecond, 0}, {time.Millisecond, 1}, {time.Second, 2}, {time.Hour, 3}, {-time.Hour, 0}, {500 * time.Millisecond, 1}} {
		f.pass(c.pass)
		if got := count(); got != c.want {
			t.Errorf("after another %v: got %d evictions, want %d", c.pass, got, c.want)
		}
	}
}

func TestSlowRateStillHasATimeToAskAgain(t *testing.T) {
	f := newSched(t, SchedulerOptions{Rate: 1e-300, Burst: 1})
	f.takenFree("n", "p1")
	if r := f.refusedFree("n", "p2", WaitingForRate); r.after != schedLongest {
		t.Errorf("got %v until it is asked again, want %v", r.after, schedLongest)
	}
}

func TestInFlightIsBounded(t *testing.T) {
	f := newSched(t, SchedulerOptions{InFlight: 2})
	f.observe("1", 9)
	one := f.takenFree("n", "p1")
	f.taken("n", "p2")
	f.refusedFree("n", "p3", WaitingForRate)
	one.done(Answer{Verdict: verdictRejected})
	one.done(Answer{Verdict: verdictRejected})
	f.takenFree("n", "p3")
	f.refusedFree("n", "p4", WaitingForRate)
}

// An overloaded server is left alone by all nodes, for longer and longer, and budgets are not to blame (R-DR-19).
func TestOverloadBacksOffGlobally(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	f.observe("1", 9)
	for i, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		want := time.Duration(seconds) * time.Second
		f.taken("n", "p1").done(Answer{Verdict: verdictOverloaded})
		for _, node := range []string{"n", "other"} {
			if r := f.refusedFree(node, "p9", ServerOverloaded); r.after != want {
				t.Errorf("refusal %d: got %v until %q asks again, want %v", i+1, r.after, node, want)
			}
		}
		f.refused("other", "p2", ServerOverloaded)
		f.pass(want - time.Millisecond)
		f.refusedFree("other", "p9", ServerOverloaded)
		f.pass(time.Millisecond)
		f.observe("1", 9)
	}
	probe := f.taken("n", "p1")
	f.refusedFree("other", "p9", ServerOverloaded) // one tries
	probe.done(Answer{Verdict: verdictAccepted})
	f.takenFree("other", "p9")
	f.taken("n", "p2").done(Answer{Verdict: verdictOverloaded})
	if r := f.refusedFree("n", "p3", ServerOverloaded); r.after != time.Second {
		t.Errorf("after an acceptance: got %v until it is asked again, want 1 s", r.after)
	}
}

// R-DR-19: what was on its way together is one overload, and an answer from before it does not end it.
func TestOverloadOfOneRoundCountsOnce(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	var tickets []*ticket
	for i := range 10 {
		tickets = append(tickets, f.takenFree("n", fmt.Sprint(i)))
	}
	for _, ticket := range tickets[1:] {
		ticket.done(Answer{Verdict: verdictOverloaded})
	}
	tickets[0].done(Answer{Verdict: verdictAccepted})
	if r := f.refusedFree("n", "p", ServerOverloaded); r.after != time.Second {
		t.Errorf("got %v until it is asked again, want 1 s", r.after)
	}
}

// R-DR-19.
func TestOverloadHonoursRetryAfter(t *testing.T) {
	f := newSched(t, SchedulerOptions{})
	f.takenFree("n", "p1").done(Answer{Verdict: verdictOverloaded, RetryAfter: 7 * time.Second})
	if r := f.refusedFree("n", "p1", ServerOverloaded); r.after != 7*time.Second {
		t.Errorf("got %v until it is asked again, want the 7 s that the server asks for", r.after)
	}
}

// Nodes that come and go leave nothing behind.
func TestMemoryIsBounded(t *testing.T) {
	f := newSched(t, SchedulerOptions{Rate: 1000, Burst: 1000})
	for i := range 5000 {
		key := types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("budget-%d", i)}
		f.budget = key
		node, pod := fmt.Sprintf("node-%d", i), fmt.Sprintf("pod-%d", i)
		f.observe("1", 2)
		f.want(node, 3, 1)
		f.accepted(node, pod)
		f.takenFree(node, pod+"-free").done(Answer{Verdict: verdictUnknown})
		f.pass(time.Second)
		// 30 s of units, a minute of demands and ten of budgets, each with a sweep's delay.
		if len(f.s.units) > 45 || len(f.s.nodes) > 75 || len(f.s.budgets) > 700 || len(f.s.flying) > 0 {
			t.Fatalf("round %d: got %d units, %d nodes, %d budgets, %d in flight",
				i, len(f.s.units), len(f.s.nodes), len(f.s.budgets), len(f.s.flying))
		}
	}
}

// The default clock is time.Now: everybody who comes back when told is served, at the rate.
func TestEverybodyIsServedAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := NewScheduler(SchedulerOptions{Rate: 10, Burst: 5})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var wg sync.WaitGroup
		for n := range 20 {
			wg.Go(func() { evictTen(s, fmt.Sprintf("node-%d", n), began) })
		}
		wg.Wait()
		// 200 evictions, 5 of them at once.
		if got := time.Since(began); got < 19500*time.Millisecond || got > 22*time.Second {
			t.Errorf("got 200 evictions in %v, want 19.5 s and not much more", got)
		}
	})
}

func evictTen(s *Scheduler, node string, began time.Time) {
	for left := 10; left > 0; {
		s.want(node, demand{remaining: left, since: began})
		ticket, r := s.take(node, PodRef{Namespace: "ns", Name: fmt.Sprintf("%s-%d", node, left)}, types.NamespacedName{})
		if r != nil {
			<-time.After(r.after)
			continue
		}
		<-time.After(100 * time.Millisecond)
		ticket.done(Answer{Verdict: verdictAccepted})
		left--
	}
	s.forget(node)
}

// Many goroutines at once: run with -race. The bounds hold at any time.
func TestBoundsHoldUnderConcurrency(t *testing.T) {
	s, err := NewScheduler(SchedulerOptions{Rate: 1e6, Burst: 1e6, InFlight: 6, PerBudget: 3})
	if err != nil {
		t.Fatal(err)
	}
	var all, guarded, most atomic.Int64
	f := sched{t: t, budget: types.NamespacedName{Namespace: "ns", Name: "web"}}
	verdicts := []Verdict{verdictAccepted, verdictGone, verdictUnknown, verdictForbidden, verdictReplaced}
	var wg sync.WaitGroup
	for n := range 12 {
		wg.Go(func() {
			node := fmt.Sprintf("node-%d", n)
			for i := range 300 {
				pod := PodRef{Namespace: "ns", Name: fmt.Sprintf("%s-%d", node, i), UID: "uid"}
				s.observe([]*policyv1.PodDisruptionBudget{f.state(fmt.Sprint(i+1), 1000, nil)})
				s.want(node, demand{remaining: 300 - i, budgets: map[types.NamespacedName]int{f.budget: 1}})
				budget, flying := f.budget, &guarded
				if i%3 == 0 {
					budget, flying = types.NamespacedName{}, new(atomic.Int64)
				}
				if ticket, _ := s.take(node, pod, budget); ticket != nil {
					if got := flying.Add(1); got > 3 {
						t.Errorf("got %d in flight under the budget, want at most 3", got)
					}
					most.Store(max(most.Load(), all.Add(1)))
					s.left(pod)
					s.spent()
					all.Add(-1)
					flying.Add(-1)
					ticket.done(Answer{Verdict: verdicts[i%len(verdicts)]})
				}
			}
			s.forget(node)
		})
	}
	wg.Wait()
	if got := most.Load(); got > 6 || got == 0 {
		t.Errorf("got up to %d in flight, want up to 6", got)
	}
	if len(s.flying) != 0 || len(s.nodes) != 0 {
		t.Errorf("got %d in flight and %d nodes at the end, want none", len(s.flying), len(s.nodes))
	}
}
