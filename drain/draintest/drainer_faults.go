// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/belayproject/belay/drain"
)

// slow is how long a request takes that gets no answer.
const slow = 40 * time.Second

// A mishap is a fault with a name.
type mishap struct {
	name string
	f    Fault
}

// refusals are answers that the request was not carried out.
func refusals() []mishap {
	return []mishap{
		{"429 of the budget", BudgetExhausted()},
		{"429 of a stale budget", BudgetStale()},
		{"409 of the budget", BudgetContended()},
		{"504 of the budget", BudgetTimeout()},
		{"409 of the pod", Conflict()},
		{"404", Gone()},
		{"429 of an overloaded server", Overloaded(3 * time.Second)},
		{"503", Unavailable()},
		{"500", InternalError()},
		{"504", GatewayTimeout()},
		{"403 of a namespace that goes", NamespaceGoing()},
		{"403 of a webhook", WebhookDenied(http.StatusForbidden)},
		{"400 of a webhook", WebhookDenied(http.StatusBadRequest)},
		{"403 of RBAC", Forbidden()},
	}
}

// silences leave the client without an answer, or let it wait for one.
func silences() []mishap {
	return []mishap{
		{"a time-out before the write", TimeoutBefore(slow)},
		{"a time-out after the write", TimeoutAfter(slow)},
		{"a slow answer", Slow(slow)},
	}
}

// answerCases spoil evictions.
func answerCases() []drainerCase {
	var cases []drainerCase
	for _, m := range append(refusals(), silences()...) {
		cases = append(cases,
			drainerCase{"the first eviction meets " + m.name + ": the node is drained in the end", func(y *yard) {
				y.survives(On(Evict, 1, m.f))
			}},
			drainerCase{"the third to sixth evictions meet " + m.name + ": the node is drained in the end", func(y *yard) {
				f := On(Evict, 3, m.f)
				f.Times = 4
				y.survives(f)
			}})
	}
	for _, c := range []struct {
		m    mishap
		want drain.Reason
	}{
		{mishap{"a webhook", WebhookDenied(http.StatusForbidden)}, drain.AdmissionDenied},
		{mishap{"a webhook without a code", WebhookDenied(http.StatusBadRequest)}, drain.AdmissionDenied},
		{mishap{"RBAC", Forbidden()}, drain.EvictionForbidden},
		{mishap{"a namespace that goes", NamespaceGoing()}, drain.NamespaceTerminating},
		{mishap{"a server that is overloaded", Overloaded(10 * time.Second)}, drain.ServerOverloaded},
		{mishap{"a budget that is stale", BudgetStale()}, drain.BudgetStale},
		{mishap{"a budget that is contended", BudgetContended()}, drain.BudgetContended},
	} {
		cases = append(cases, drainerCase{fmt.Sprintf("%s that refuses for good is reported as %s, asked seldom, and gone on from", c.m.name, c.want),
			func(y *yard) { y.refusedForGood(c.m.f, c.want) }})
	}
	return append(cases, drainerCase{"R-DR-19: after an overload nothing is evicted, on any node, for as long as the server asked", overloadHolds})
}

// survives drains a node with the faults on the way, and releases it.
func (y *yard) survives(faults ...Fault) {
	y.t.Helper()
	node := y.populated()
	y.Plot().Faults(faults...)
	r := y.request(node, drain.Drain)
	st := y.reconcile(r, phase(drain.Drained))
	if st.Outcome != drain.OutcomeDrained {
		y.errorf("outcome: got %q, want Drained", st.Outcome)
	}
	y.arrived(node, r)
}

// populated is a node with pods under a budget, and others to go to.
func (y *yard) populated() string {
	y.t.Helper()
	node := y.Node(y.t, "a")
	y.App(y.t, ReplicaSet, "web", 4)
	y.App(y.t, ReplicaSet, "free", 2)
	y.Budget(y.t, MaxUnavailable(y.Namespace(), "web", "2", web()))
	y.Node(y.t, "b")
	return node
}

// arrived checks what is true at the end of every drain that was not forced.
func (y *yard) arrived(node string, r drain.Request) {
	y.t.Helper()
	y.empty(node)
	y.onlyPlanned(node)
	y.release(r)
	y.clean(node)
}

func (y *yard) refusedForGood(f Fault, want drain.Reason) {
	node := y.populated()
	y.Plot().Faults(Always(Evict, f))
	r := y.request(node, drain.Drain)
	st := y.reconcile(r, blocked(want))
	if st.Phase != drain.Draining {
		y.errorf("phase: got %s, want Draining", st.Phase)
	}
	y.Plot().ClearLog()
	y.pass(r, 10*time.Minute)
	if n := len(y.Plot().Log(Evict)); n > 6*10*2 {
		y.errorf("evictions in 10 min: got %d of 6 pods, want at most 2 a minute for each", n)
	}
	y.Plot().ClearFaults()
	y.reconcile(r, phase(drain.Drained))
	y.arrived(node, r)
}

func overloadHolds(y *yard) {
	nodes := []string{y.populated(), y.Node(y.t, "c")}
	y.App(y.t, ReplicaSet, "more", 6)
	y.Node(y.t, "d")
	const asked = 30 * time.Second
	y.Plot().Faults(On(Evict, 2, Overloaded(asked)))
	s := y.set(nodes...)
	s.MaxNodes.IntVal = 2
	y.run(s, nil)
	log := y.Plot().Log(Evict)
	var told time.Time
	for _, call := range log {
		if !call.Wrote && told.IsZero() {
			told = call.Answered
		}
	}
	for _, call := range log {
		if wait := call.Started.Sub(told); wait > 0 && wait < asked {
			y.errorf("got %v, started %v after the server asked for %v", call, wait, asked)
		}
	}
	y.onlyPlanned(nodes...)
}

// writeFaultCases spoil writes to the Node and reads.
func writeFaultCases() []drainerCase {
	var cases []drainerCase
	for _, m := range append([]mishap{
		{"409", Conflict()},
		{"429 of an overloaded server", Overloaded(3 * time.Second)},
		{"503", Unavailable()},
		{"500", InternalError()},
		{"504", GatewayTimeout()},
		{"403 of a webhook", WebhookDenied(http.StatusForbidden)},
		{"403 of RBAC", Forbidden()},
	}, silences()...) {
		for n, which := range []string{"the cordon", "the write that the node is drained", "the release"} {
			cases = append(cases, drainerCase{which + " meets " + m.name + ": the node is drained, and given back", func(y *yard) {
				y.survives(On(PatchNode, n+1, m.f))
			}})
		}
		if m.name != "409" {
			cases = append(cases, drainerCase{"the last read meets " + m.name + ": the node is drained in the end", func(y *yard) {
				y.survives(On(ListPods, 1, m.f))
			}})
		}
	}
	return append(cases,
		drainerCase{"where the Node must not be written nothing is evicted", func(y *yard) {
			node := y.populated()
			y.Plot().Faults(Always(PatchNode, Forbidden()))
			y.pass(y.request(node, drain.Drain), 5*time.Minute)
			if log := y.Plot().Log(Evict); len(log) > 0 {
				y.errorf("got %v, want no eviction without a cordon", log)
			}
			if n := len(y.Plot().Log(PatchNode)); n > 5*10 {
				y.errorf("writes in 5 min: got %d, want at most 10 a minute", n)
			}
		}},
		drainerCase{"where the node cannot be read consistently it does not count as drained", func(y *yard) {
			node := y.populated()
			y.Plot().Faults(Always(ListPods, Unavailable()))
			if st := y.pass(y.request(node, drain.Drain), 10*time.Minute); st.Phase == drain.Drained {
				y.errorf("got %+v, want it not drained", st)
			}
		}},
	)
}
