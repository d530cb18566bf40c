// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// R-CS-85: two selectors bring two configs to two sets of nodes: each node has its turn once, with the config of its own set, and a node of
// neither is left alone.
func TestTwoSelectorsTwoConfigs(t *testing.T) {
	f := newFleet(t, 0)
	for _, n := range []string{"a1", "a2", "a3", "b1", "b2", "c1"} {
		f.add(n, map[string]string{"pool": n[:1]})
	}
	other := revision("w7")
	pool := func(name string) labels.Selector { return labels.SelectorFromSet(labels.Set{"pool": name}) }
	f.p.Groups = []Group{{Name: "a", Selector: pool("a")}, {Name: "b", Selector: pool("b"), Target: &other}}
	f.passes(100, Completed)
	if begun := slices.Sorted(slices.Values(f.begun)); !slices.Equal(begun, []string{"a1", "a2", "a3", "b1", "b2"}) {
		t.Errorf("R-CS-85: begun %v, want each node of a and of b once, and no other", begun)
	}
	want := map[string]string{"a": "v2", "b": "w7", "c": "v1"}
	for _, n := range f.s.Nodes {
		if n.Runs.Name != want[n.Name[:1]] {
			t.Errorf("R-CS-85: node %q runs %q, want %q", n.Name, n.Runs.Name, want[n.Name[:1]])
		}
	}
}

// R-CS-86: a rollout of a config is completed when every selected node runs its digest, and not before: neither while a node is under way or
// says nothing, nor for a node that runs other content under the same name.
func TestCompletedMeansEveryNodeRunsTheDigest(t *testing.T) {
	f := newFleet(t, 4)
	f.node("node-003").Runs = protocol.Revision{Name: "v2", Digest: "sha256:other"}
	f.silent["node-001"] = true
	done := func() bool {
		return !slices.ContainsFunc(f.s.Nodes, func(n Node) bool { return n.Runs.Digest != "sha256:v2" })
	}
	f.p.Caps = []Cap{{Scope: Total, Max: number(2)}}
	for i := range 100 {
		all := done()
		if d := f.pass(); d.Phase == Completed && !all {
			t.Fatalf("R-CS-86: completed in pass %d, with nodes that do not run the digest: %+v", i, d.Counts)
		}
		if i == 60 {
			if f.runs("v2") != 3 || f.last.Counts.Done != 3 {
				t.Errorf("R-CS-86: %+v while one agent is silent, want 3 nodes done", f.last.Counts)
			}
			delete(f.silent, "node-001")
		}
	}
	if f.last.Phase != Completed || !done() {
		t.Errorf("R-CS-86: phase %s, every node runs the digest: %t, want both", f.last.Phase, done())
	}
}

// trying counts the nodes on which a config is on trial: they have begun with it, and have not said how it ended.
func (f *fleet) trying() int {
	n := 0
	for _, node := range f.s.Nodes {
		switch node.Shadow.Report.Phase {
		case protocol.PhaseApplying, protocol.PhaseVerifying:
			n++
		}
	}
	return n
}

// R-CS-87: the rate is a number of nodes: never more of them have a config on trial, and as many do.
// L-CS-19.
func TestNeverMoreNodesOnTrialThanAllowed(t *testing.T) {
	for _, most := range []int{1, 2, 5} {
		f := newFleet(t, 12)
		f.p.Caps = []Cap{{Scope: Total, Max: number(most)}}
		f.fails = func(node, _ string) protocol.Event {
			if node == "node-004" { // it has another try, within the same cap
				return protocol.EventFellBack
			}
			return ""
		}
		f.p.Detectors = []Detector{Failures{At: number(2)}}
		reached := 0
		for range 120 {
			f.pass()
			reached = max(reached, f.trying())
		}
		if reached != most || f.runs("v2") != 11 {
			t.Errorf("R-CS-87: with a cap of %d at most %d nodes were on trial, and %d run the config, want the cap and 11", most, reached, f.runs("v2"))
		}
	}
}

// rejecting makes every other node reject the config, for good, and makes passes until the rollout has stopped, and 50 more.
func rejecting(t *testing.T, limit, most int) (f *fleet, rejected int) {
	t.Helper()
	f = newFleet(t, 20)
	f.p.Caps = []Cap{{Scope: Total, Max: number(most)}}
	f.p.Detectors = []Detector{Failures{At: number(limit)}}
	f.fails = func(node, revision string) protocol.Event {
		if revision == "v2" && node[len(node)-1]%2 == 1 {
			return protocol.EventFellBack
		}
		return ""
	}
	f.passes(600, Frozen)
	begun := slices.Clone(f.begun)
	f.passes(50)
	if f.last.Phase != Frozen || !slices.Equal(begun, f.begun) {
		t.Errorf("R-CS-88: %s after the stop, and %v were begun since", f.last.Phase, f.begun[len(begun):])
	}
	for _, o := range f.last.Progress.Outcomes {
		if o.Result != Succeeded {
			rejected++
		}
	}
	return f, rejected
}

// R-CS-88: after the allowed number of nodes have rejected a config the rollout stops by itself, and no further node is assigned it. What was
// under way when that was found may end, so that the cap less one is what can come on top.
func TestRejectedConfigStopsByItself(t *testing.T) {
	for _, limit := range []int{1, 2, 3} {
		for _, most := range []int{1, 3} {
			t.Run(fmt.Sprintf("after %d, %d at a time", limit, most), func(t *testing.T) {
				if _, rejected := rejecting(t, limit, most); rejected < limit || rejected >= limit+most {
					t.Errorf("R-CS-88: %d nodes have rejected the config, want it stopped at %d, with %d at a time", rejected, limit, most)
				}
			})
		}
	}
}

// R-CS-89: how careful a rollout is, is a setting: with the same fault in the same fleet, each setting stops at a point of its own, and the more
// careful one has touched fewer nodes.
func TestSameFaultTwoSettingsTwoStops(t *testing.T) {
	touched := func(limit int) int {
		f, _ := rejecting(t, limit, 1)
		return len(slices.Compact(slices.Sorted(slices.Values(f.begun))))
	}
	careful, daring := touched(1), touched(4)
	if careful != 2 || daring != 8 {
		t.Errorf("R-CS-89: stopped with %d and %d nodes touched, want 2 after one rejection of every other node, and 8 after four", careful, daring)
	}
}

// tried is the name of a node that has the config on trial, or empty.
func (f *fleet) tried() string {
	for _, n := range f.s.Nodes {
		if n.Shadow.Report.Phase == protocol.PhaseApplying {
			return n.Name
		}
	}
	return ""
}

// R-CS-91: nodes join and leave in the middle, also one that has the config on trial: in every pass the counts are those of the nodes that there
// are, and the rollout comes to its end.
func TestNodesComeAndGoDuringARollout(t *testing.T) {
	f := newFleet(t, 9)
	f.p.Caps = []Cap{{Scope: Total, Max: number(2)}}
	gone := map[string]bool{}
	leave := func(name string) { gone[name] = true; f.remove(name) }
	for i := range 200 {
		switch tried := f.tried(); {
		case i == 3:
			leave("node-008") // that waits
			f.add("new-1", nil)
		case i > 10 && len(gone) == 1 && tried != "":
			leave(tried)
		case i == 40:
			leave(f.begun[1]) // that is done
			f.add("new-2", nil)
		}
		if n := f.pass().Counts.Selected - len(f.s.Nodes); n != 0 && n != 1 { // one that is gone counts until its slot is freed
			t.Fatalf("R-CS-91: in pass %d %d nodes more are selected than there are", i, n)
		}
	}
	want := Counts{Selected: 8, Done: 8}
	if f.last.Phase != Completed || f.runs("v2") != 8 || f.last.Counts != want || len(f.s.Ledger.Slots) != 0 {
		t.Errorf("R-CS-91: phase %s, %d nodes run v2, counts %+v, slots %v, want 8 nodes done: %s",
			f.last.Phase, f.runs("v2"), f.last.Counts, f.s.Ledger.Slots, f.last.Message)
	}
	if i := slices.IndexFunc(f.last.Nodes, func(d Decision) bool { return gone[d.Node] }); i >= 0 {
		t.Errorf("R-CS-91: a node that is gone is decided on: %+v", f.last.Nodes[i])
	}
}

// R-CS-92: a node that comes when a rollout is over gets what it was completed with, and one that comes during the next one does not get that
// before its turn.
func TestLateNodeGetsTheFinishedConfig(t *testing.T) {
	f := newFleet(t, 3)
	f.passes(60, Completed)
	f.add("late", nil).Runs = protocol.Revision{}
	f.passes(20)
	if got := f.node("late").Runs; got != (protocol.Revision{Name: "v2", Digest: "sha256:v2"}) {
		t.Errorf("R-CS-92: the late node runs %v, want v2", got)
	}
	f.p.Completed, f.p.Target = revision("v2"), revision("v3")
	f.p.Stages = []Stage{{Name: "canary", Size: size(1), Approval: true}, {Name: "rest"}}
	f.pass()
	f.add("later", nil).Runs = protocol.Revision{}
	f.passes(60, AtGate)
	f.passes(20)
	if got := f.node("later").Runs.Name; got != "v2" {
		t.Errorf("R-CS-92: the node that came while v3 is tried runs %q, want v2", got)
	}
}
