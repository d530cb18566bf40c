// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belayproject/belay/drain"
)

// TestSecondRunIsRefused starts two and ten runs of one holder on one node. The first drains it; the others are refused
// with its name and write nothing, whatever happens to the Node meanwhile. One that takes over writes once, and the
// first then ends and leaves the node to it. The audit log counts the writes. R-DR-09
func TestSecondRunIsRefused(t *testing.T) {
	for _, runs := range []int{2, 10} {
		t.Run(fmt.Sprint(runs), func(t *testing.T) {
			c := newCluster(t)
			node := c.mustNode(t, "a", workRole).Name
			c.mustPod(t, "hooked", "hooked", node, hooked)
			c.settled(t, 1)
			user := c.name + "-drainer"
			config := c.asDrainer(t, user)
			set := func(i int) drain.Set {
				s := setOf(user, drain.Drain, node)
				s.Request.Run, s.Request.Maintenance = fmt.Sprint("run-", i), fmt.Sprint("m", i)
				return s
			}
			waits := func(s drain.SetStatus) bool { return len(s.Nodes) == 1 && len(s.Nodes[0].Blockers) == 1 }
			first := start(t, mustConnect(t, config, nil), set(0))
			first.reconciled(t, "the first run has begun", waits)
			for i := 1; i < runs; i++ {
				st, err := start(t, mustConnect(t, config, nil), set(i)).wait(t)
				must(t, err)
				n := st.Nodes[0]
				if n.Phase != drain.Failed || n.Reason != drain.HeldByOtherRun || !strings.Contains(n.Message, `"run-0"`) {
					t.Errorf("run %d: got %s, want it refused with the name of the first", i, inJSON(n))
				}
			}
			c.looksAgain(t, first, node)
			if n := nodeWrites(t, user); n != 1 {
				t.Errorf("got %d writes of the Node by %d runs, want one", n, runs)
			}
			last := set(runs)
			last.Request.TakeOver = func(run string) bool { return run == "run-0" }
			taker := start(t, mustConnect(t, config, nil), last)
			taker.reconciled(t, "the last run has taken over", waits)
			st, err := first.wait(t)
			must(t, err)
			if n := st.Nodes[0]; n.Phase != drain.Failed || n.Reason != drain.Superseded {
				t.Errorf("the first run: got %s, want it ended as superseded", inJSON(n))
			}
			if n := nodeWrites(t, user); n != 2 {
				t.Errorf("got %d writes of the Node, want one more for the taking over", n)
			}
			taker.cancel()
			<-taker.ended
			if n := c.getNode(t, node); marked(n) || n.Spec.Unschedulable {
				t.Errorf("got annotations %v, unschedulable %t, want the node given back", n.Annotations, n.Spec.Unschedulable)
			}
		})
	}
}

// nodeWrites counts the writes of Nodes that the server has carried out for a user.
func nodeWrites(t *testing.T, user string) int {
	t.Helper()
	n := 0
	for _, e := range audited(t, user) {
		if e.isNodeWrite() && e.ResponseStatus.Code < 300 {
			n++
		}
	}
	return n
}
