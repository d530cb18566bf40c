// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"
	"time"

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
		drainerCase{"a watch that is lost in the middle leads to no wrong word, and the drain goes on when it is back", watchLost},
		drainerCase{"a node does not count as drained while the server has a pod on it that the cache does not show", unseenPod},
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

// watchLost freezes the cache at the second eviction. It says nothing where the bed has no watch to lose.
func watchLost(y *yard) {
	b, ok := y.Bed.(memoryBed)
	if !ok {
		return
	}
	node := y.populated()
	y.Plot().Faults(On(Evict, 2, WatchDropped()))
	r := y.request(node, drain.Drain)
	st := y.pass(r, 10*time.Minute)
	if st.Phase == drain.Drained && len(y.ours(node)) > 0 {
		y.errorf("while the cache was frozen: got Drained with %d pods on the node", len(y.ours(node)))
	}
	if n := len(y.Plot().Log(Evict)); n > 6+10*2*6 {
		y.errorf("evictions in 10 min: got %d, want at most 2 a minute for each pod", n)
	}
	b.RestoreWatch()
	y.reconcile(r, phase(drain.Drained))
	y.arrived(node, r)
}

// ours are the names of the test's pods on the node.
func (y *yard) ours(node string) []string {
	var names []string
	for _, pod := range y.GetPods(y.t, node) {
		if pod.Namespace == y.Namespace() {
			names = append(names, pod.Name)
		}
	}
	return names
}

// unseenPod binds a pod to a node that is settling, while the cache is frozen.
func unseenPod(y *yard) {
	b, ok := y.Bed.(memoryBed)
	if !ok {
		return
	}
	node := y.populated()
	r := y.request(node, drain.Drain)
	r.Policy.Unmanaged = drain.EvictPods
	y.reconcile(r, phase(drain.Settling))
	b.DropWatch()
	y.Pod(y.t, NewPod(y.Namespace(), "unseen", node))
	if st := y.pass(r, time.Minute); st.Phase == drain.Drained {
		y.errorf("got %+v with a pod on the node, want it not drained", st)
	}
	b.RestoreWatch()
	y.reconcile(r, phase(drain.Drained))
	y.arrived(node, r)
}
