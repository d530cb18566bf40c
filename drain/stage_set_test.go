// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
	"github.com/belayproject/belay/internal/raceshare"
)

// cordons are when each node was first written to, and when it was recorded as drained.
func (s *stageTest) cordons() (begun, drained map[string]time.Time) {
	begun, drained = map[string]time.Time{}, map[string]time.Time{}
	for _, c := range s.c.Log(draintest.PatchNode) {
		if _, ok := begun[c.Object]; !ok {
			begun[c.Object] = c.Started
		}
		if strings.Contains(c.Patch, `\"drained\"`) && c.Wrote {
			drained[c.Object] = c.Started
		}
	}
	return begun, drained
}

// R-DR-20: a group starts when the one before it is drained, not before; the nodes of a group start together as far as MaxNodes goes.
func TestGroupsStartOneAfterTheOther(t *testing.T) {
	stage(t, draintest.Options{Termination: 10 * time.Second}, nil, func(s *stageTest) {
		for _, n := range []string{"n4", "n5", "n6"} {
			s.c.AddNode(n)
		}
		for i := range 4 {
			s.web(fmt.Sprintf("web%d", i), 2, fmt.Sprintf("n%d", i+1))
		}
		set := drain.Set{Request: s.request(""), Groups: [][]string{{"n3", "n1"}, {"n2"}, {"n4"}}, MaxNodes: intstr.FromInt32(4)}
		st, err := s.d.Run(s.Context(), set, nil)
		if err != nil || !st.Done {
			t.Fatalf("Run: got %+v, %v, want it done", st, err)
		}
		begun, drained := s.cordons()
		if !begun["n3"].Equal(begun["n1"]) {
			t.Errorf("first group: got it begun at %s and %s, want together", begun["n3"], begun["n1"])
		}
		for _, pair := range [][2]string{{"n3", "n2"}, {"n1", "n2"}, {"n2", "n4"}} {
			if begun[pair[1]].Before(drained[pair[0]]) {
				t.Errorf("%s: got it begun at %s, want it not before %s is drained at %s", pair[1], begun[pair[1]], pair[0], drained[pair[0]])
			}
		}
	})
}

// R-DR-20, R-DR-16: a node past its deadline stops the groups after it, or is skipped where that is asked for; Run says so and returns.
func TestFailedNodeStopsTheGroupsAfterIt(t *testing.T) {
	for _, skip := range []bool{false, true} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.stuck()
			s.web("api", 2, "n2")
			set := drain.Set{Request: s.request("", func(r *drain.Request) { r.Deadline = time.Now().Add(10 * time.Minute) }),
				Groups: [][]string{{"n1"}, {"n2"}}, SkipFailed: skip}
			if skip {
				set.Request.Deadline = time.Time{}
				set.Groups[0][0] = "n9" // is not there
			}
			st, err := s.d.Run(s.Context(), set, nil)
			if err != nil || !st.Done {
				t.Fatalf("Run: got %+v, %v, want it done", st, err)
			}
			if skip {
				s.wants(st.Nodes[0], drain.Failed, drain.NodeNotFound, drain.OutcomeFailed)
				s.wants(st.Nodes[1], drain.Drained, "", drain.OutcomeDrained)
				return
			}
			s.wants(st.Nodes[0], drain.Draining, "DeadlinePassed", drain.OutcomeBlocked)
			s.wants(st.Nodes[1], drain.Pending, "SetStopped", "")
			if begun, _ := s.cordons(); !begun["n2"].IsZero() {
				t.Error("second group: got it begun, want it left alone")
			}
			if !strings.Contains(st.Message, "n1") || st.Reason != "DeadlinePassed" {
				t.Errorf("got reason %q, message %q, want the node that failed", st.Reason, st.Message)
			}
		})
	}
}

// R-DR-20: the nodes of a group are closed before the first pod leaves, so that each pod moves once; a set that leaves them open moves
// some of them again and again.
func TestPodsOfASetMoveOnce(t *testing.T) {
	for _, open := range []bool{false, true} {
		stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
			nodes := []string{"n1", "n2", "n3", "n4", "n5", "n6"}
			for _, n := range append(nodes[3:], "spare1", "spare2") {
				s.c.AddNode(n)
			}
			s.web("web", 30, nodes...)
			s.sleep(time.Second)
			set := drain.Set{Request: s.request(""), Groups: [][]string{nodes}, LeaveOpen: open}
			st, err := s.d.Run(s.Context(), set, nil)
			if err != nil || !st.Done {
				t.Fatalf("Run: got %+v, %v, want it done", st, err)
			}
			if n := len(s.accepted()); open && n <= 30 || !open && n != 30 {
				t.Errorf("left open %t: got %d evictions of 30 pods", open, n)
			}
			writes := map[string]int{}
			for _, c := range s.c.Log(draintest.PatchNode) {
				writes[c.Object]++
			}
			if want := map[bool]int{false: 3, true: 2}[open]; writes["n6"] != want || writes["n1"] != 2 {
				t.Errorf("left open %t: got %v writes, want %d of a node that waits, and 2 of the first", open, writes, want)
			}
			for _, n := range nodes {
				s.phase(s.request(n, func(r *drain.Request) { r.Mode = drain.Release }), time.Minute, drain.Released)
				s.clean(n)
			}
		})
	}
}

// R-DR-20: a node on which none but blocked pods are left gives its place to the next, and is drained when they may leave.
func TestBlockedNodeYieldsItsPlace(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		s.c.AddNode("spare")
		s.stuck()
		s.web("api", 2, "n2")
		set := drain.Set{Request: s.request(""), Groups: [][]string{{"n1", "n2"}, {"n3"}}}
		time.AfterFunc(time.Hour, func() { s.c.DeleteBudget("default", "stuck") })
		began := time.Now()
		second := time.Time{}
		st, err := s.d.Run(s.Context(), set, func(st drain.SetStatus) {
			if st.Nodes[1].Phase == drain.Drained && second.IsZero() {
				second = time.Now()
			}
			if second.IsZero() || time.Since(began) >= time.Hour {
				return
			}
			s.wants(st.Nodes[0], drain.Draining, drain.BudgetNeverAllows, drain.OutcomeBlocked)
			s.wants(st.Nodes[2], drain.Pending, "WaitingForGroup", "")
		})
		if err != nil || !st.Done || second.Sub(began) > time.Minute {
			t.Errorf("got %+v, %v, n2 drained after %s, want all done, and n2 in a minute", st, err, second.Sub(began))
		}
	})
}

// R-DR-20: a set that stops leaves no node cordoned whose turn never came.
func TestSetThatStopsOpensTheNodesThatWaited(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.finishing()
		s.sleep(time.Second)
		set := drain.Set{Request: s.request(""), Groups: [][]string{{"n1", "n2", "n3"}}, NodeTimeout: 5 * time.Minute}
		closed := false
		st, err := s.d.Run(s.Context(), set, func(drain.SetStatus) { closed = closed || s.c.LiveNode("n2").Spec.Unschedulable })
		if err != nil || !st.Done || !closed {
			t.Fatalf("got %+v, %v, cordoned meanwhile: %t, want it done, and n2 cordoned while it waited", st, err, closed)
		}
		s.wants(st.Nodes[1], drain.Pending, "SetStopped", "")
		s.clean("n2")
		s.clean("n3")
		if !s.c.LiveNode("n1").Spec.Unschedulable {
			t.Error("n1: got it schedulable, want the node whose drain has begun as it is")
		}
	})
}

// R-DR-20: a Node that is deleted while its set is drained is drained; a name that never had one has failed.
func TestNodeThatVanishesIsDrained(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.stuck()
		s.web("api", 2, "n2")
		set := drain.Set{Request: s.request(""), Groups: [][]string{{"n1"}, {"n2"}}}
		time.AfterFunc(time.Minute, func() { s.c.DeleteNode("n1") })
		st, err := s.d.Run(s.Context(), set, nil)
		if err != nil || !st.Done || st.Reason != "" {
			t.Fatalf("got %+v, %v, want it done", st, err)
		}
		s.wants(st.Nodes[0], drain.Drained, drain.NodeNotFound, drain.OutcomeDrained)
		s.wants(st.Nodes[1], drain.Drained, "", drain.OutcomeDrained)
	})
}

// R-DR-16: the time of a node counts from its own beginning, not from that of the set.
func TestNodeTimeoutCountsFromEachNode(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.finishing()
		s.web("api", 2, "n2")
		began := time.Now()
		set := drain.Set{Request: s.request(""), Groups: [][]string{{"n1", "n2"}}, SkipFailed: true, NodeTimeout: 10 * time.Minute}
		st, err := s.d.Run(s.Context(), set, nil)
		if err != nil || !st.Done {
			t.Fatalf("got %+v, %v, want it done", st, err)
		}
		s.wants(st.Nodes[0], drain.Draining, "DeadlinePassed", drain.OutcomeBlocked)
		s.wants(st.Nodes[1], drain.Drained, "", drain.OutcomeDrained)
		if took := time.Since(began); took < 10*time.Minute || took > 11*time.Minute {
			t.Errorf("got it done after %s, want the ten minutes of n1 and the time of n2", took)
		}
	})
}

// A wide is a cluster with everything that a cancel has to respect, made from a seed.
type stageWide struct {
	o       draintest.Options
	set     drain.Set
	instant time.Duration
}

func stageWideOf(seed uint64) stageWide {
	r := rand.New(rand.NewPCG(seed, 1))
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d) + 1)) }
	lag := []time.Duration{0, 0, upTo(2 * time.Second)}[r.IntN(3)]
	w := stageWide{o: draintest.Options{CacheLag: lag, BudgetLag: upTo(time.Second), ControllerLag: upTo(time.Second), Latency: upTo(500 * time.Millisecond),
		Termination: upTo(10 * time.Second), Startup: upTo(3 * time.Second), Readiness: upTo(3 * time.Second)}}
	w.set = drain.Set{Request: drain.Request{Holder: "test", Maintenance: "m1", Mode: drain.Drain}, Groups: [][]string{{"n1", "n2"}, {"n3"}}, MaxNodes: intstr.FromInt32(2)}
	if r.IntN(4) == 0 {
		w.set.Request.Policy.Uncordoned = drain.Recordon
	}
	if r.IntN(2) == 0 { // one of them waits for a place
		w.set.MaxNodes = intstr.FromInt32(1)
	}
	w.instant = upTo([]time.Duration{2 * time.Second, 15 * time.Second, time.Minute}[r.IntN(3)])
	if r.IntN(4) == 0 {
		w.instant = w.instant.Truncate(w.o.Latency + 1) // the very instant of an answer
	}
	return w
}

// R-DR-17: whenever Run is cancelled, no eviction starts after it has returned, every node is as it was before, those that others
// hold or had cordoned included, and the evicted pods are listed.
func TestRunCancelledAtAnyInstant(t *testing.T) {
	for seed := range raceshare.Of[uint64](t, stageSeeds) {
		w := stageWideOf(seed)
		stage(t, w.o, func(o *drain.Options) { o.NodeConditions = seed%3 == 0 }, func(s *stageTest) {
			for i := range 3 {
				s.c.AddNode(fmt.Sprintf("spare%d", i))
			}
			s.c.UpdateNode("n2", func(n *corev1.Node) { n.Spec.Unschedulable = true })
			s.sleep(time.Minute)
			s.web("web", 9, "n1", "n2", "n3")
			s.web("api", 4, "n1", "n3")
			s.c.AddBudget(draintest.MaxUnavailable("default", "web", "2", map[string]string{"app": "web"}))
			s.sleep(time.Minute)
			before := s.shapes()
			ctx, cancel := context.WithCancel(s.Context())
			time.AfterFunc(w.instant, cancel)
			st, err := s.d.Run(ctx, w.set, nil)
			cancel()
			returned := time.Now()
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("seed %d: got %v, want nil or the end of the context", seed, err)
			}
			if err == nil {
				return // it was done before
			}
			s.sleep(5 * time.Minute)
			if got := s.shapes(); !maps.Equal(got, before) {
				t.Errorf("seed %d, cancelled after %s: got nodes %v, want %v; log %v", seed, w.instant, got, before, s.c.Log(draintest.PatchNode))
			}
			s.cancelled(seed, st, returned)
		})
	}
}

const stageSeeds = 400

// cancelled checks the evictions of a Run that was cancelled against its result.
func (s *stageTest) cancelled(seed uint64, st drain.SetStatus, returned time.Time) {
	s.Helper()
	listed := map[string]bool{}
	for _, n := range st.Nodes {
		for _, p := range n.Evicted {
			listed[p.String()] = true
		}
	}
	for _, c := range s.evictions() {
		if c.Started.After(returned) || c.Answered.After(returned) {
			s.Errorf("seed %d: got %s after Run had returned at %s", seed, c, returned)
		}
		if c.Err == nil && !listed[c.Object] {
			s.Errorf("seed %d: got %s, want it in the result %v", seed, c, st)
		}
	}
}

// shapes is what a drain may change of the nodes, in one line each.
func (s *stageTest) shapes() map[string]string {
	out := map[string]string{}
	for _, name := range []string{"n1", "n2", "n3"} {
		n := s.c.LiveNode(name)
		var keys []string
		for _, c := range n.Status.Conditions {
			keys = append(keys, string(c.Type))
		}
		slices.Sort(keys)
		out[name] = fmt.Sprint(n.Spec.Unschedulable, n.Spec.Taints, n.Annotations[drain.MarkAnnotation], keys)
	}
	return out
}

// R-DR-17: a server that fails while a cancelled Run gives the nodes back is asked again, for a minute at most.
func TestCancelledRunGivesUpAfterAMinute(t *testing.T) {
	for _, outage := range []time.Duration{30 * time.Second, time.Hour} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.stuck()
			ctx, cancel := context.WithCancel(s.Context())
			time.AfterFunc(time.Minute, func() {
				s.c.Faults(draintest.Always(draintest.PatchNode, draintest.Unavailable()))
				time.AfterFunc(outage, s.c.ClearFaults)
				cancel()
			})
			began := time.Now()
			_, err := s.d.Run(ctx, drain.Set{Request: s.request(""), Groups: [][]string{{"n1"}}}, nil)
			if took := time.Since(began) - time.Minute; !errors.Is(err, context.Canceled) || took > time.Minute || took < min(outage, time.Minute) {
				t.Errorf("outage of %s: got %v after %s, want the end of the context within a minute", outage, err, took)
			}
			if open := !s.c.LiveNode("n1").Spec.Unschedulable; open != (outage < time.Minute) {
				t.Errorf("outage of %s: got the node schedulable: %v", outage, open)
			}
		})
	}
}
