// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

// A mishap is a fault with a name. A silent one leaves the client without an answer, or lets it wait for one, for as long as the bed says.
type mishap struct {
	name   string
	f      Fault
	silent func(time.Duration) Fault
}

// on is the fault for the n-th request of a kind.
func (m mishap) on(y *yard, verb Verb, n int) Fault {
	if m.silent != nil {
		return On(verb, n, m.silent(y.Silence()))
	}
	return On(verb, n, m.f)
}

func answered(name string, f Fault) mishap { return mishap{name: name, f: f} }

// troubles are answers that a server gives to any request.
func troubles() []mishap {
	return []mishap{
		answered("429 of an overloaded server", Overloaded(3*time.Second)),
		answered("503", Unavailable()),
		answered("500", InternalError()),
		answered("504", GatewayTimeout()),
		answered("403 of RBAC", Forbidden()),
	}
}

// denials are answers to a write.
func denials() []mishap {
	return append(troubles(), answered("403 of a webhook", WebhookDenied(http.StatusForbidden)), answered("409", Conflict()))
}

// refusals are answers to an eviction that it was not carried out.
func refusals() []mishap {
	return append(denials(),
		answered("429 of the budget", BudgetExhausted()),
		answered("429 of a stale budget", BudgetStale()),
		answered("409 of the budget", BudgetContended()),
		answered("504 of the budget", BudgetTimeout()),
		answered("404", Gone()),
		answered("403 of a namespace that goes", NamespaceGoing()),
		answered("400 of a webhook", WebhookDenied(http.StatusBadRequest)))
}

// silences leave the client without an answer, or let it wait for one.
func silences() []mishap {
	return []mishap{
		{name: "a time-out before the write", silent: TimeoutBefore},
		{name: "a time-out after the write", silent: TimeoutAfter},
		{name: "a slow answer", silent: Slow},
	}
}

// answerCases spoil evictions.
func answerCases() []drainerCase {
	var cases []drainerCase
	for _, m := range append(refusals(), silences()...) {
		cases = append(cases, drainerCase{"the first eviction meets " + m.name + ": the node is drained in the end", func(y *yard) {
			y.survives(y.populated(), m.on(y, Evict, 1))
			y.noError()
		}})
	}
	for _, c := range []struct {
		m    mishap
		want drain.Reason
	}{
		{answered("a webhook", WebhookDenied(http.StatusForbidden)), drain.AdmissionDenied},
		{answered("a webhook without a code", WebhookDenied(http.StatusBadRequest)), drain.AdmissionDenied},
		{answered("RBAC", Forbidden()), drain.EvictionForbidden},
		{answered("a namespace that goes", NamespaceGoing()), "NamespaceTerminating"},
		{answered("a server that is overloaded", Overloaded(10*time.Second)), drain.ServerOverloaded},
		{answered("a budget that is stale", BudgetStale()), drain.BudgetStale},
		{answered("a budget that is contended", BudgetContended()), drain.BudgetContended},
	} {
		cases = append(cases, drainerCase{fmt.Sprintf("%s that refuses for good is reported as %s, asked seldom, and gone on from", c.m.name, c.want),
			func(y *yard) { y.refusedForGood(c.m.f, c.want) }})
	}
	return append(cases, drainerCase{"R-DR-19: after an overload nothing is evicted, on any node, for as long as the server asked", overloadHolds})
}

// repeatedCases spoil several evictions, which are tried again later and later.
func repeatedCases() []drainerCase {
	var cases []drainerCase
	for _, m := range append(refusals(), silences()...) {
		cases = append(cases, drainerCase{"the third to sixth evictions meet " + m.name + ": the node is drained in the end", func(y *yard) {
			f := m.on(y, Evict, 3)
			f.Times = 4
			y.survives(y.populated(), f)
			y.noError()
		}})
	}
	return cases
}

// survives drains a node with the faults on the way, and releases it.
func (y *yard) survives(node string, faults ...Fault) {
	y.t.Helper()
	y.Plot().Faults(faults...)
	r := y.request(node, drain.Drain)
	st := y.reconcile(r, phase(drain.Drained))
	if st.Outcome != drain.OutcomeDrained {
		y.errorf("outcome: got %q, want Drained", st.Outcome)
	}
	y.held(node, r)
	y.cordonBeforeAll(node)
	y.told(st)
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

// sparse is a node with a few pods of an app without a budget, and another to go to.
func (y *yard) sparse() string {
	y.t.Helper()
	node := y.Node(y.t, "a")
	y.App(y.t, ReplicaSet, "free", 3)
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

// held checks that the server has the node as a drain keeps it: closed, and marked with whose it is.
func (y *yard) held(node string, r drain.Request) {
	y.t.Helper()
	n := y.GetNode(y.t, node)
	if n == nil || !n.Spec.Unschedulable || !strings.Contains(n.Annotations[drain.MarkAnnotation], r.Holder) {
		y.errorf("node %s: got %+v, want it cordoned, with the mark of %s", node, n, r.Holder)
	}
}

// cordonBeforeAll checks that the server had the cordon when the first pod was asked to leave. R-DR-01.
func (y *yard) cordonBeforeAll(node string) {
	y.t.Helper()
	closed := slices.IndexFunc(y.Plot().Log(), func(c Call) bool { return c.Verb == PatchNode && c.Object == node && c.Wrote })
	leaves := slices.IndexFunc(y.Plot().Log(), func(c Call) bool { return c.Verb == Evict || c.Verb == Delete })
	if leaves >= 0 && (closed < 0 || leaves < closed) {
		y.errorf("got %v, want no pod asked to leave before the cordon", y.Plot().Log()[leaves])
	}
}

// told checks that every eviction that the status tells of was carried out by the server.
func (y *yard) told(st drain.Status) {
	y.t.Helper()
	done := map[types.UID]bool{}
	for _, call := range y.Plot().Log(Evict, Delete) {
		done[call.UID] = done[call.UID] || call.Wrote
	}
	for _, pod := range st.Evicted {
		if !done[pod.UID] {
			y.errorf("evicted: got %s told, which the server has not accepted", pod)
		}
	}
}

// noError checks that what happened to pods has failed no pass: it is status.
func (y *yard) noError() {
	y.t.Helper()
	if len(y.failed) > 0 {
		y.errorf("got %d passes that failed, the first with %v, want blockers in the status", len(y.failed), y.failed[0])
	}
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
	y.pass(r, y.Vigil())
	y.seldom(Evict, y.Vigil(), 2*6)
	y.Plot().ClearFaults()
	y.reconcile(r, phase(drain.Drained))
	y.noError()
	y.arrived(node, r)
}

// seldom bounds the requests of a kind in the log, which is of that long: so many a minute, or half of that at once.
func (y *yard) seldom(verb Verb, span time.Duration, minutely int) {
	y.t.Helper()
	if n, most := len(y.Plot().Log(verb)), max(minutely/2, int(float64(minutely)*span.Minutes())); n > most {
		y.errorf("requests %s in %v: got %d, want at most %d", verb, span, n, most)
	}
}

// oddPodCases refuse one pod for good.
func oddPodCases() []drainerCase {
	var cases []drainerCase
	for _, c := range []struct {
		m    mishap
		want drain.Reason
	}{
		{answered("500", InternalError()), drain.NoAnswer},
		{answered("504", GatewayTimeout()), drain.NoAnswer},
		{mishap{name: "a time-out", silent: TimeoutBefore}, drain.NoAnswer},
		{answered("403 of a webhook", WebhookDenied(http.StatusForbidden)), drain.AdmissionDenied},
		{answered("403 of RBAC", Forbidden()), drain.EvictionForbidden},
		{answered("409", Conflict()), drain.Terminating},
		{answered("404", Gone()), drain.Terminating},
	} {
		cases = append(cases, drainerCase{fmt.Sprintf("one pod that always meets %s is reported as %s, fails no pass, and holds nobody else up", c.m.name, c.want),
			func(y *yard) { y.oddPod(c.m, c.want) }})
	}
	return cases
}

func (y *yard) oddPod(m mishap, want drain.Reason) {
	node := y.sparse()
	odd := y.GetPods(y.t, node)[0]
	f := m.on(y, Evict, 1)
	f.Times, f.Object = -1, RefTo(odd).String()
	y.Plot().Faults(f)
	r := y.request(node, drain.Drain)
	st := y.reconcile(r, func(st drain.Status) bool { return st.Counts.Remaining == 1 && blocked(want)(st) })
	if b := st.Blockers[0]; b.UID != odd.UID || st.Phase != drain.Draining {
		y.errorf("got %+v, want it draining, and the pod %s alone to stay", st, odd.Name)
	}
	y.Plot().ClearFaults()
	y.reconcile(r, phase(drain.Drained))
	y.noError()
	y.arrived(node, r)
}

func overloadHolds(y *yard) {
	nodes := []string{y.populated(), y.Node(y.t, "c")}
	y.App(y.t, ReplicaSet, "more", 6)
	y.Node(y.t, "d")
	const asked = 15 * time.Second
	f := On(Evict, 2, Overloaded(asked))
	f.Delay = 200 * time.Millisecond // the others of that moment are on their way
	y.Plot().Faults(f)
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
	const atOnce = time.Second // one for each node may have been let go when the answer came, and not be sent yet
	onTheWay := len(nodes)
	for _, call := range log {
		wait := call.Started.Sub(told)
		if wait > 0 && wait < atOnce && onTheWay > 0 {
			onTheWay--
			continue
		}
		if wait > 0 && wait < asked {
			y.errorf("got %v, started %v after the server asked for %v", call, wait, asked)
		}
	}
	y.onlyPlanned(nodes...)
}
