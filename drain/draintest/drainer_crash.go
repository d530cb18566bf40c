// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"

	"github.com/belayproject/belay/drain"
)

// mostWrites bounds the crashes of one case; a drain of the suite has fewer writes.
const mostWrites = 30

// crashCases kill the process. R-DR-07.
func crashCases() []drainerCase {
	var cases []drainerCase
	for _, kept := range []bool{false, true} {
		for _, c := range []struct {
			when string
			make func() Fault
		}{{"before", CrashBefore}, {"after", CrashAfter}} {
			for n := 1; n <= 9; n++ {
				rule := fmt.Sprintf("R-DR-07: a process that dies %s write %d is taken up by the next, with its last status: %v", c.when, n, kept)
				cases = append(cases, drainerCase{rule, func(y *yard) { y.diesAt(On(AnyWrite, n, c.make()), kept) }})
			}
		}
	}
	return append(cases,
		drainerCase{"R-DR-07: a process that dies at every second write gets there", func(y *yard) {
			node := y.populated()
			r := y.request(node, drain.Drain)
			for range mostWrites {
				y.Plot().ClearFaults()
				y.Plot().Faults(On(AnyWrite, 2, CrashAfter()))
				if st := y.reconcile(r, phase(drain.Drained)); st.Phase == drain.Drained && !y.Plot().Crashed() {
					break
				}
				y.Plot().Revive()
				y.start()
			}
			y.Plot().ClearFaults()
			y.reconcile(r, phase(drain.Drained))
			y.arrived(node, r)
		}},
	)
}

// diesAt drains and releases with a process that dies at the fault, and one that takes over.
func (y *yard) diesAt(f Fault, kept bool) {
	y.t.Helper()
	node := y.populated()
	y.Plot().Faults(f)
	r := y.request(node, drain.Drain)
	r.Last = y.takeOver(r, y.reconcile(r, phase(drain.Drained)), kept)
	st := y.reconcile(r, phase(drain.Drained))
	if st.Outcome != drain.OutcomeDrained {
		y.errorf("outcome: got %q, want Drained", st.Outcome)
	}
	r.Mode, r.Last = drain.Release, nil
	y.takeOver(r, y.reconcile(r, phase(drain.Released)), kept)
	y.empty(node)
	y.onlyPlanned(node)
	y.reconcile(r, phase(drain.Released))
	y.clean(node)
}

// takeOver starts the next process where the last has died, and returns what it knows.
func (y *yard) takeOver(r drain.Request, st drain.Status, kept bool) *drain.Status {
	if !y.Plot().Crashed() {
		return r.Last
	}
	y.Plot().Revive()
	y.start()
	if kept {
		return &st
	}
	return nil
}
