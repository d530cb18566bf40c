// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// run drains nodes in the background, all at once, and sends the result.
func (s *stageTest) run(r drain.Request, nodes ...string) <-chan drain.SetStatus {
	done := make(chan drain.SetStatus, 1)
	d := s.d
	go func() {
		set := drain.Set{Request: r, Groups: [][]string{nodes}}
		set.MaxNodes.IntVal = int32(len(nodes))
		st, err := d.Run(s.Context(), set, nil)
		if err != nil && s.Context().Err() == nil {
			s.Errorf("Run: got %v, want nil", err)
		}
		done <- st
	}()
	return done
}

// drained fails the test unless every node of a result is.
func (s *stageTest) drained(done <-chan drain.SetStatus) {
	s.Helper()
	select {
	case st := <-done:
		for _, n := range st.Nodes {
			s.wants(n, drain.Drained, "", drain.OutcomeDrained)
		}
	default:
		s.Fatalf("got a drain under way, want it done; log %v", s.c.Log())
	}
}

// R-DR-19: a server that is overloaded is asked less by all nodes together, with growing pauses, and the drain goes on as soon as it has
// recovered, without a pause for each pod.
func TestOverloadBacksOffGlobally(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second, Latency: 10 * time.Millisecond}, nil, func(s *stageTest) {
		for i, n := range []string{"n1", "n2"} {
			s.web(fmt.Sprintf("web%d", i), 30, n)
		}
		began := time.Now()
		s.c.Faults(draintest.Always(draintest.Evict, draintest.Overloaded(0)))
		done := s.run(s.request(""), "n1", "n2")
		s.sleep(5 * time.Minute)
		calls := s.evictions()
		if n := len(calls); n < 8 || n > 32+12 {
			t.Errorf("evictions in 5 min of overload: got %d, want those in flight and then one for each pause", n)
		}
		for i, c := range calls {
			if at := c.Started.Sub(began); i > 32 && c.Started.Sub(calls[i-1].Started) < min(time.Minute, at/4) {
				t.Errorf("eviction %d: got it %s after the one before, at %s, want growing pauses", i, c.Started.Sub(calls[i-1].Started), at)
			}
		}
		s.c.ClearFaults()
		s.sleep(2 * time.Minute)
		s.drained(done)
		calls = s.evictions()
		first := slices.IndexFunc(calls, func(c draintest.Call) bool { return c.Err == nil })
		if first < 0 {
			t.Fatal("evictions after the recovery: got none")
		}
		if took := calls[len(calls)-1].Started.Sub(calls[first].Started); took > 10*time.Second {
			t.Errorf("all pods after the first was let go: got %s, want the rate alone to count", took)
		}
	})
}

// R-DR-19: the server's own wish is followed, by all nodes.
func TestRetryAfterIsFollowedByAllNodes(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 1, "n1")
		s.web("api", 1, "n2")
		s.c.Faults(draintest.On(draintest.Evict, 1, draintest.Overloaded(50*time.Second)))
		began := time.Now()
		st := s.pass(s.request("n1"))
		if b := st.Blockers[0]; b.Reason != drain.ServerOverloaded || b.Action != drain.Wait {
			t.Errorf("got %+v, want it to wait for the server", b)
		}
		s.until(s.request("n2"), 2*time.Minute, "an eviction", func(drain.Status) bool { return len(s.evictions()) == 2 })
		if took := time.Since(began); took < 50*time.Second || took > 52*time.Second {
			t.Errorf("other node: got its first eviction after %s, want 50s", took)
		}
	})
}

// Run finishes without polling: a budget that opens and a pod that becomes ready wake it. For two minutes after an eviction the budget
// is expected to open again, and nothing is sent; after that each pod is asked at most each two minutes, on average.
func TestRunWakesOnBudgetsAndSendsLittleMeanwhile(t *testing.T) {
	o := draintest.Options{Termination: 3 * time.Second, Startup: 20 * time.Minute, CacheLag: 100 * time.Millisecond, BudgetLag: 100 * time.Millisecond}
	stage(t, o, nil, func(s *stageTest) {
		s.sleep(time.Second)
		s.web("web", 6, "n1", "n2", "n3")
		s.c.AddBudget(draintest.MaxUnavailable("default", "web", "1", map[string]string{"app": "web"}))
		s.sleep(time.Second)
		done := s.run(s.request(""), "n1")
		s.sleep(2*time.Minute - time.Second)
		if n := len(s.evictions()); n != 1 {
			t.Fatalf("evictions while the budget is expected to open: got %d, want the first alone", n)
		}
		s.sleep(8 * time.Minute)
		if n := len(s.evictions()); n < 3 || n > 1+7 {
			t.Fatalf("evictions while the budget is stuck: got %d, want the pod that is left asked now and then", n)
		}
		s.sleep(10*time.Minute + 3*time.Second)
		if calls := s.accepted(); len(calls) != 2 {
			t.Fatalf("accepted evictions after the budget has opened: got %d, want 2", len(calls))
		}
		if b := s.c.LiveBudget("default", "web"); b.Status.DisruptionsAllowed != 0 {
			t.Errorf("budget: got %d allowed, want 0", b.Status.DisruptionsAllowed)
		}
		s.sleep(20 * time.Minute)
		s.drained(done)
		if n := len(s.evictions()); n > 22 {
			t.Errorf("evictions in 40 min: got %d, want at most 22", n)
		}
	})
}

// A budget that opens while a pass is under way, after the pass has looked at it, is used at once: nothing else would wake the drain,
// since the one pod that it asks for is refused. The first pass is not the one to look at: its own cordon wakes the drain.
func TestBudgetThatOpensDuringAPassIsUsed(t *testing.T) {
	for at := 10100 * time.Millisecond; at < 10500*time.Millisecond; at += 100 * time.Millisecond {
		stage(t, draintest.Options{Latency: 500 * time.Millisecond}, nil, func(s *stageTest) {
			s.web("app", 1, "n1")
			s.web("stuck", 1, "n1")
			s.c.AddBudget(draintest.MinAvailable("default", "stuck", "1", map[string]string{"app": "stuck"}))
			fault := draintest.On(draintest.Evict, 1, draintest.WebhookDenied(http.StatusBadRequest))
			fault.Times, fault.Object = 2, "default/app-00001"
			s.c.Faults(fault)
			s.sleep(time.Second)
			began := time.Now()
			done := s.run(s.request(""), "n1")
			s.sleep(at)
			s.c.UpdateBudget("default", "stuck", func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable.IntVal = 0 })
			s.sleep(5 * time.Second)
			calls := s.accepted()
			if len(calls) < 1 || !strings.HasPrefix(calls[0].Object, "default/stuck") || calls[0].Started.Sub(began) > 11100*time.Millisecond {
				t.Errorf("budget opened %s after the beginning, the pass ended after 10.5s or 11s: got %v, want the guarded pod evicted right then", at, calls)
			}
			s.sleep(time.Minute)
			s.drained(done)
		})
	}
}

// S4: a budget that has refused an eviction, which the cache had believed possible, is asked again when it changes, not when the pod's
// turn comes.
func TestRefusedPodGoesWhenItsBudgetChanges(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 4, "n1")
		s.c.AddBudget(draintest.MaxUnavailable("default", "web", "4", map[string]string{"app": "web"}))
		s.c.Faults(draintest.On(draintest.Evict, 1, draintest.BudgetExhausted()))
		s.sleep(time.Second)
		began := time.Now()
		done := s.run(s.request(""), "n1")
		s.sleep(time.Second)
		s.c.UpdateBudget("default", "web", func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable.IntVal = 3 })
		s.sleep(9 * time.Second)
		s.drained(done)
		calls := s.evictions()
		if took := calls[len(calls)-1].Started.Sub(began); took > 2*time.Second {
			t.Errorf("last eviction: got it after %s, want it when the budget changed", took)
		}
	})
}

// A refusal by a budget that the cache does not know is not asked about again at once: 10 s, then twice as long each time, up to 2 min.
func TestRefusalWithoutAKnownBudgetIsNotHammered(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 1, "n1")
		s.c.Faults(draintest.Always(draintest.Evict, draintest.BudgetExhausted()))
		s.run(s.request(""), "n1")
		s.sleep(time.Hour)
		calls := s.evictions()
		if len(calls) < 25 || len(calls) > 35 {
			t.Errorf("evictions in an hour: got %d, want about 32", len(calls))
		}
		for i := 1; i < len(calls); i++ {
			gap, want := calls[i].Started.Sub(calls[i-1].Started), min(10*time.Second<<min(i-1, 4), 2*time.Minute)
			if gap < want*19/20 || gap > want*23/20 {
				t.Errorf("pause %d: got %s, want about %s", i, gap, want)
			}
		}
	})
}

// When nothing changes, a drain looks again after 10 s, then less and less often up to 2 min, and asks nothing of the server but for the
// eviction of the pod that it waits for: after 2 min, and doubling up to 16.
func TestFallbackWhenNothingChanges(t *testing.T) {
	m := &stageSeries{}
	stage(t, draintest.Options{}, func(o *drain.Options) { o.Metrics = m.hooks() }, func(s *stageTest) {
		s.stuck()
		done := s.run(s.request(""), "n1")
		s.sleep(time.Minute)
		s.c.ClearLog()
		m.count()
		s.sleep(time.Hour)
		if calls := s.c.Log(); len(calls) != len(s.evictions()) || len(calls) < 4 || len(calls) > 6 {
			t.Errorf("requests in a quiet hour: got %v, want evictions of the one pod at growing times", calls)
		}
		if n := m.count(); n < 28 || n > 62 {
			t.Errorf("passes in a quiet hour: got %d, want one or two each 2 min", n)
		}
		s.c.DeleteBudget("default", "stuck")
		s.sleep(10 * time.Second)
		s.drained(done)
	})
	stage(t, draintest.Options{}, func(o *drain.Options) { o.Metrics = m.hooks() }, func(s *stageTest) {
		s.stuck()
		m.count()
		r := s.request("n1")
		for began := time.Now(); time.Since(began) < time.Hour; {
			_, after, err := s.d.ReconcileRequest(s.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			s.sleep(after)
		}
		if n := m.count(); n > 45 {
			t.Errorf("passes in an hour: got %d, want at most 45", n)
		}
		calls := slices.DeleteFunc(s.evictions(), func(c draintest.Call) bool { return c.Err == nil })
		for i := range len(calls) - 1 {
			want := min(2*time.Minute<<i, 16*time.Minute)
			if got := calls[i+1].Started.Sub(calls[i].Started); got < want || got > want*11/10 {
				t.Errorf("pause %d: got %s, want %s", i, got, want)
			}
		}
	})
}

// An overloaded server, or a closed budget, is waited for without a pass each 200 ms.
func TestWaitingForTheSchedulerIsNoPolling(t *testing.T) {
	m := &stageSeries{}
	stage(t, draintest.Options{}, func(o *drain.Options) { o.Metrics = m.hooks() }, func(s *stageTest) {
		s.web("web", 50, "n1")
		s.c.Faults(draintest.Always(draintest.Evict, draintest.Overloaded(0)))
		s.run(s.request(""), "n1")
		s.sleep(10 * time.Minute)
		if n := m.count(); n > 60 {
			t.Errorf("passes in 10 min of overload: got %d, want at most 60", n)
		}
	})
}

// Pods under one budget are evicted one after the other, and an eviction that a webhook keeps for long holds none of them back (R-DR-02, R-DR-19).
func TestSlowEvictionHoldsNoOtherBack(t *testing.T) {
	for _, first := range []time.Duration{0, 9 * time.Second} {
		stage(t, draintest.Options{Latency: 20 * time.Millisecond}, func(*drain.Options) {}, func(s *stageTest) {
			s.web("web", 6, "n1")
			s.c.AddBudget(draintest.MaxUnavailable("default", "web", "6", map[string]string{"app": "web"}))
			s.sleep(time.Second)
			s.c.Faults(draintest.On(draintest.Evict, 1, draintest.Slow(first)))
			began := time.Now()
			done := s.run(s.request(""), "n1")
			s.sleep(time.Minute)
			s.drained(done)
			calls := s.evictions()
			if len(calls) != 6 {
				t.Errorf("%d evictions, want 6: %v", len(calls), calls)
			}
			met, last := 0, time.Duration(0)
			for i, call := range calls {
				last = max(last, call.Started.Sub(began))
				for _, other := range calls[i+1:] {
					if call.Started.Before(other.Answered) && other.Started.Before(call.Answered) {
						met++
					}
				}
			}
			if most := 3 * time.Second; last > most {
				t.Errorf("the first takes %v longer: the last eviction began after %v, want at most %v", first, last, most)
			}
			if first == 0 && met != 0 || first != 0 && met != 5 {
				t.Errorf("the first takes %v longer: %d pairs of evictions were under way at once; want none, or all others beside the slow one", first, met)
			}
		})
	}
}
