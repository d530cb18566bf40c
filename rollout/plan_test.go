// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// Without any setting, nodes go one at a time, by name, and the rollout is completed (R-RO-11).
func TestDefaultIsOneAtATime(t *testing.T) {
	f := newFleet(t, 5)
	for range 100 {
		if d := f.pass(); len(d.Ledger.Slots) > 1 {
			t.Fatalf("%d slots, want 1 at most", len(d.Ledger.Slots))
		}
	}
	if f.last.Phase != Completed || f.runs("v2") != 5 || len(f.s.Ledger.Slots) != 0 {
		t.Fatalf("phase %s, %d nodes run v2: %s", f.last.Phase, f.runs("v2"), f.last.Message)
	}
	if !slices.IsSorted(f.begun) {
		t.Errorf("begun in the order %v", f.begun)
	}
	if got := f.last.Progress.Nodes; len(got) != 0 {
		t.Errorf("a rollout without trouble is remembered: %v", got)
	}
}

// A completed rollout asks for nothing, changes nothing, and does not ask to be called again.
func TestCompletedRolloutIsIdle(t *testing.T) {
	f := newFleet(t, 3)
	f.passes(100, Completed)
	before := f.last.Progress
	d := f.pass()
	if got := doing(d, ""); len(got) != 3 || d.After != 0 {
		t.Errorf("after completion: %+v, again in %s", d.Nodes, d.After)
	}
	if len(d.Progress.Outcomes) != len(before.Outcomes) || d.Ledger.Epoch != 3 {
		t.Errorf("progress %+v, epoch %d", d.Progress, d.Ledger.Epoch)
	}
}

func TestNodeThatIsSickBeforeIsPutOff(t *testing.T) { // R-RO-09
	f := newFleet(t, 3)
	f.node("node-000").Health = Verdict{From: "pods", Answer: Deny, Message: "2 of 3 pods ready"}
	f.node("node-001").Health = Verdict{}
	d := f.pass()
	f.wantReason(d, "node-000", ReasonUnhealthy)
	f.wantReason(d, "node-001", ReasonUnhealthy)
	if got := doing(d, protocol.EventAdmit); !slices.Equal(got, []string{"node-002"}) {
		t.Fatalf("admitted %v, want node-002", got)
	}
	if d.Counts.Deferred != 2 {
		t.Errorf("counts %+v, want 2 deferred", d.Counts)
	}
	f.passes(50)
	if len(f.last.Progress.Outcomes) != 1 || f.last.Phase != Running {
		t.Errorf("phase %s, outcomes %v: a node that is put off is no failure, and no end", f.last.Phase, f.last.Progress.Outcomes)
	}
	f.node("node-000").Health, f.node("node-001").Health = Verdict{Answer: Allow}, Verdict{Answer: Allow}
	f.passes(50, Completed)
}

func TestNodeThatIsAwayUsesCapacity(t *testing.T) {
	f := newFleet(t, 3)
	f.node("node-002").Away = "not ready"
	d := f.pass()
	f.wantReason(d, "node-002", ReasonAway)
	f.wantReason(d, "node-000", "Cap")
}

func TestCommittedNodeIsCordonedDrainedAndGivenBack(t *testing.T) {
	f := newFleet(t, 1)
	var seen []protocol.State
	f.p.Cycle = time.Minute
	for range 20 {
		d := f.pass()
		n := f.of(d, "node-000")
		if len(seen) == 0 || seen[len(seen)-1] != n.State {
			seen = append(seen, n.State)
		}
		disrupted := n.State == protocol.Committed || n.State == protocol.Proceeding || n.State == protocol.Applying
		if n.Cordon != disrupted || n.Cordon && n.Uncordon {
			t.Fatalf("%s: cordon %t, uncordon %t", n.State, n.Cordon, n.Uncordon)
		}
	}
	want := []protocol.State{protocol.Resting, protocol.Admitted, protocol.Committed, protocol.Applying, protocol.Verifying, protocol.Done, protocol.Resting}
	if !slices.Equal(seen, want) {
		t.Errorf("states %v, want %v", seen, want)
	}
}

// Non-intrusive revisions cordon and drain nothing, and have their own cap (R-RO-22).
func TestNonIntrusiveNodesKeepTheirWork(t *testing.T) {
	f := newFleet(t, 4)
	f.p.Target.Class = NonIntrusive
	f.p.Caps = []Cap{{Scope: Total, Max: number(4)}, {Scope: ByClass, Key: string(NonIntrusive), Max: number(2)}, {Scope: ByClass, Key: string(Intrusive), Max: number(1)}}
	for range 50 {
		d := f.pass()
		for _, n := range d.Nodes {
			if n.Cordon {
				t.Fatalf("node %q is cordoned while %s", n.Node, n.State)
			}
		}
		if len(d.Ledger.Slots) > 2 {
			t.Fatalf("%d slots, want 2 at most", len(d.Ledger.Slots))
		}
	}
	if f.last.Phase != Completed {
		t.Errorf("phase %s: %s", f.last.Phase, f.last.Message)
	}
}

// What joins during a rollout gets the revision that is known to be good, and its turn at the end (R-RO-30, R-RO-31).
func TestJoinedNodeGetsTheCompletedRevisionFirst(t *testing.T) {
	f := newFleet(t, 3)
	f.p.Stages = []Stage{{Name: "canary", Size: size(1), Approval: true}, {Name: "rest"}}
	f.p.Caps = []Cap{{Scope: Total, Max: number(2)}}
	f.pass()
	f.add("joined", nil).Runs = protocol.Revision{}
	f.passes(50, AtGate)
	f.passes(20)
	if got := f.node("joined").Runs.Name; got != "v1" {
		t.Fatalf("the node that joined runs %q at the gate, want v1", got)
	}
	f.wantReason(f.last, "joined", "JoinedLater")
	if len(f.last.Progress.Outcomes) != 1 {
		t.Errorf("outcomes %v: that of another revision is no evidence", f.last.Progress.Outcomes)
	}
	f.p.Verb = Verb{Request: "1", Do: Promote}
	f.passes(50, Completed)
	if f.runs("v2") != 4 {
		t.Errorf("%d nodes run v2, want 4", f.runs("v2"))
	}
	f.add("late", nil)
	f.passes(50)
	if f.runs("v2") != 5 || f.last.Phase != Completed {
		t.Errorf("after completion: %d nodes run v2, phase %s", f.runs("v2"), f.last.Phase)
	}
}

// A node that leaves is forgotten; one that is gone in the middle is lost, and its slot is freed by that (R-RO-03, R-RO-30).
func TestNodeThatLeaves(t *testing.T) {
	f := newFleet(t, 3)
	f.passes(3)
	f.remove("node-000")
	d := f.pass()
	if got := doing(d, protocol.EventGone); !slices.Equal(got, []string{"node-000"}) {
		t.Fatalf("gone: %v", got)
	}
	d = f.pass()
	if o := d.Progress.Outcomes; len(o) != 1 || o[0].Result != Lost {
		t.Errorf("outcomes %v, want one that is lost", o)
	}
	f.passes(50)
	if f.runs("v2") != 2 {
		t.Errorf("%d nodes run v2: %s", f.runs("v2"), f.last.Message)
	}
}

// A node that is not selected any more is given back, or ends what it has begun (R-RO-04).
func TestNodeThatIsDeselected(t *testing.T) {
	f := newFleet(t, 1)
	f.p.Groups[0].Selector = labels.SelectorFromSet(labels.Set{"pool": "a"})
	f.node("node-000").Labels = map[string]string{"pool": "a"}
	f.stuck["node-000"] = true
	f.passes(4)
	f.node("node-000").Labels = nil
	d := f.pass()
	if got := doing(d, protocol.EventUndo); len(got) != 1 || d.Counts.Selected != 0 {
		t.Fatalf("%+v, want it undone", d.Nodes)
	}
	f.passes(5)
	if len(f.s.Ledger.Slots) != 0 || f.cordoned["node-000"] {
		t.Errorf("slots %v, cordoned %t", f.s.Ledger.Slots, f.cordoned["node-000"])
	}
}

// Groups can have revisions of their own: they converge at once, and the trouble of one is not the other's (R-RO-27).
func TestGroupsWithTheirOwnRevisions(t *testing.T) {
	f := newFleet(t, 0)
	for _, n := range []string{"a1", "a2", "b1", "b2"} {
		f.add(n, map[string]string{"pool": n[:1]})
	}
	other := revision("w7")
	f.p.Groups = []Group{
		{Name: "a", Selector: labels.SelectorFromSet(labels.Set{"pool": "a"})}, {Name: "b", Nodes: []string{"b2", "b1"}, Target: &other},
	}
	f.p.Caps = []Cap{{Scope: ByGroup, Max: number(1)}}
	f.fails = func(_, revision string) protocol.Event {
		if revision == "v2" {
			return protocol.EventFellBack
		}
		return ""
	}
	f.passes(60)
	if f.runs("w7") != 2 || f.runs("v2") != 0 {
		t.Errorf("%d nodes run w7, %d run v2: %s", f.runs("w7"), f.runs("v2"), f.last.Message)
	}
	if slices.Contains(f.begun, "a2") {
		t.Errorf("begun %v: v2 has failed on a1, and was tried on a2", f.begun)
	}
}

func TestPrefetchIsAheadAndBounded(t *testing.T) {
	f := newFleet(t, 5)
	f.p.Prefetch = size(2)
	d := f.plan()
	if got := doing(d, protocol.EventStage); !slices.Equal(got, []string{"node-001", "node-002"}) {
		t.Errorf("fetching ahead %v", got)
	}
	fetched := map[string]bool{}
	for range 100 {
		for _, node := range doing(f.pass(), protocol.EventStage) {
			fetched[node] = true
		}
	}
	if f.last.Phase != Completed || len(fetched) != 4 {
		t.Errorf("phase %s, %d nodes have fetched ahead, want all but the first", f.last.Phase, len(fetched))
	}
}
