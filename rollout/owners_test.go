// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// R-RO-27: a node belongs to the first rollout that selects it, unless another one has begun with it; one that can't be followed keeps what it had.
func TestOwners(t *testing.T) {
	young, old := Owner{Name: "a", UID: "1", Created: start().Add(time.Hour)}, Owner{Name: "b", UID: "2", Created: start()}
	twin := Owner{Name: "c", UID: "0", Created: start()}
	all := []Owner{young, twin, old}
	if slices.SortFunc(all, Owner.Compare); all[0] != old || all[1] != twin || all[2] != young {
		t.Errorf("the order is %+v, want the oldest first, and then by name", all)
	}
	var o Owners
	o.Keep(old, Progress{Members: []string{"u-0"}})
	o.Select(twin, []Decision{{UID: "u-0"}, {UID: "u-1"}, {UID: "u-2", Group: -1}})
	l := protocol.Ledger{Epoch: 1, Slots: []protocol.Slot{{Node: "n-1", UID: "u-1", Rollout: young.UID, Attempt: 1}}}
	for _, c := range []struct {
		node, rollout, owner string
	}{{"u-0", young.UID, "b"}, {"u-0", old.UID, ""}, {"u-1", young.UID, ""}, {"u-1", old.UID, "c"}, {"u-2", young.UID, ""}} {
		owner, is := o.Of(c.node, c.rollout, l)
		if is != (c.owner != "") || is && owner.Name != c.owner {
			t.Errorf("for rollout %s node %s belongs to %+v, %t; want %q", c.rollout, c.node, owner, is, c.owner)
		}
	}
}

// hidden is a fleet of six nodes, of which node-000 and node-001 belong to another rollout and node-002 is not well.
func hidden(t *testing.T) (f *fleet, theirs map[string]string) {
	f = newFleet(t, 6)
	f.node("node-002").Health = Verdict{Answer: Deny, Message: "2 of 3 replicas"}
	var o Owners
	o.Select(Owner{Name: "older", UID: "older"}, []Decision{{UID: "uid-node-000"}, {UID: "uid-node-001"}})
	given := slices.Clone(f.s.Nodes)
	f.s.Nodes, theirs = o.Hide(f.s.Nodes, f.p.UID, f.s.Ledger)
	if given[0].Health.Answer != Allow || f.s.Nodes[0].Health.Answer != Deny || len(theirs) != 2 {
		t.Errorf("%+v became %+v with %v, want a copy in which two nodes are not to be begun", given[0].Health, f.s.Nodes[0].Health, theirs)
	}
	return f, theirs
}

// R-RO-27: nodes of others wait for those, and are neither ahead of a node nor said to be unwell.
func TestDecisionsYield(t *testing.T) {
	f, theirs := hidden(t)
	d := f.plan()
	d.Yield(theirs)
	if d.Waiting[ReasonOther] != 2 || d.Waiting[ReasonUnhealthy] != 1 || len(d.Findings) != 1 || d.Findings[0].Check != CheckOverlap {
		t.Errorf("they wait for %v, with findings %+v; want two for another rollout, and a finding", d.Waiting, d.Findings)
	}
	if want := `OtherRollout (2)`; !strings.Contains(d.Message, want) || !strings.Contains(d.Message, `2 nodes are selected that belong to rollout "older"`) {
		t.Errorf("the message is %q, want %s and whose they are", d.Message, want)
	}
	for name, want := range map[string]string{"node-001": "comes first", "node-005": "1 more have their turn before it"} {
		if e, _ := d.Why(name); !strings.Contains(e.String(), want) {
			t.Errorf("%s: %s; want %q", name, e.String(), want)
		}
	}
}

// R-RO-27: a simulation has no turns for nodes of others.
func TestSimulationYields(t *testing.T) {
	f, theirs := hidden(t)
	s, err := Simulate(f.s, f.p, f.now, Assumptions{Cycle: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	s.Yield(theirs)
	left, waits := map[string]Reason{}, map[Reason]int{}
	for _, l := range s.Expected.Left {
		left[l.Node] = l.Why.Reason
	}
	for _, w := range s.Expected.Waits {
		waits[w.Reason] += w.Nodes
	}
	if len(s.Expected.Turns) != 3 || left["node-000"] != ReasonOther || left["node-001"] != ReasonOther || left["node-002"] != ReasonUnhealthy {
		t.Errorf("%d turns, and left are %v; want three turns, and two nodes left to another rollout", len(s.Expected.Turns), left)
	}
	if got := fmt.Sprint(waits[ReasonOther], waits[ReasonUnhealthy]); got != "2 1" || !strings.Contains(s.Expected.Message, "OtherRollout (2)") {
		t.Errorf("nodes wait for %v: %s; want 2 for another rollout and 1 until it is well", waits, s.Expected.Message)
	}
}

// What is said of nodes that others have, and of broken ones that hold up all, is true of both cases.
func TestSayingsAreTrue(t *testing.T) {
	for reason, want := range map[Reason]string{
		ReasonOther:    "keeps it until it does not select the node any more, or is deleted",
		ReasonStranded: "repaired or replaced, or another revision has to be named; acknowledging them gives up their capacity, and does not by itself let further nodes get",
	} {
		d := Decisions{Phase: Running, Nodes: []Decision{{Node: "n", UID: "u", Why: &Why{Reason: reason}}}}
		if e, _ := d.Why("n"); !strings.Contains(e.Change, want) {
			t.Errorf("%s changes by %q, want %q", reason, e.Change, want)
		}
	}
}
