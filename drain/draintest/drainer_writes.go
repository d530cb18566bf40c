// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"time"

	"github.com/belayproject/belay/drain"
)

// writeFaultCases spoil writes to the Node.
func writeFaultCases() []drainerCase {
	var cases []drainerCase
	for _, m := range append(denials(), silences()...) {
		for n, which := range []string{"the cordon", "the write that the node is drained", "the release"} {
			cases = append(cases, drainerCase{which + " meets " + m.name + ": the node is drained, and given back", func(y *yard) {
				y.survives(y.sparse(), m.on(y, PatchNode, n+1))
			}})
		}
	}
	return append(cases, drainerCase{"where the Node must not be written nothing is evicted", func(y *yard) {
		node := y.populated()
		y.Plot().Faults(Always(PatchNode, Forbidden()))
		y.pass(y.request(node, drain.Drain), y.Vigil()/2)
		if log := y.Plot().Log(Evict); len(log) > 0 {
			y.errorf("got %v, want no eviction without a cordon", log)
		}
		y.seldom(PatchNode, y.Vigil()/2, 10)
	}})
}

// deleteCases spoil the DELETE of the ladder.
func deleteCases() []drainerCase {
	var cases []drainerCase
	for _, m := range append(denials(), append(silences(), answered("404", Gone()))...) {
		cases = append(cases, drainerCase{"the first DELETE of a drain that passes its budgets meets " + m.name + ": the node is drained in the end",
			func(y *yard) { y.forced(m.on(y, Delete, 1)) }})
	}
	return cases
}

// forced drains a node past a budget that never allows.
func (y *yard) forced(f Fault) {
	y.t.Helper()
	node := y.Node(y.t, "a")
	y.App(y.t, ReplicaSet, "web", 2)
	y.Budget(y.t, MaxUnavailable(y.Namespace(), "web", "0", web()))
	y.Node(y.t, "b")
	y.Plot().Faults(f)
	r := y.request(node, drain.Drain)
	r.Policy.Escalation = []drain.Escalation{{After: time.Second, Step: drain.StepDelete}}
	st := y.reconcile(r, phase(drain.Drained))
	if st.Outcome != drain.OutcomeForced || len(st.Forced) == 0 {
		y.errorf("got outcome %q and %v forced, want it told that budgets were passed", st.Outcome, st.Forced)
	}
	y.noError()
	y.held(node, r)
	y.told(st)
	y.empty(node)
	y.planned([]string{node})
	y.cordonBeforeAll(node)
	y.release(r)
	y.clean(node)
}
