// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// Percentages are rounded down, and are at least 1 (R-RO-11).
func TestPercentagesOfCaps(t *testing.T) {
	for _, c := range []struct {
		max   intstr.IntOrString
		nodes int
		want  int
	}{
		{intstr.FromString("10%"), 1, 1},
		{intstr.FromString("10%"), 9, 1},
		{intstr.FromString("10%"), 10, 1},
		{intstr.FromString("10%"), 11, 1},
		{intstr.FromString("10%"), 19, 1},
		{intstr.FromString("10%"), 20, 2},
		{intstr.FromString("25%"), 11, 2},
		{intstr.FromString("100%"), 11, 11},
		{intstr.FromString("1%"), 11, 1},
		{intstr.FromInt32(3), 11, 3},
		{intstr.FromInt32(30), 11, 11},
	} {
		f := newFleet(t, c.nodes)
		f.p.Caps = []Cap{{Scope: Total, Max: c.max}}
		if got := len(doing(f.plan(), protocol.EventAdmit)); got != c.want {
			t.Errorf("%s of %d nodes: %d admitted, want %d", c.max.String(), c.nodes, got, c.want)
		}
	}
}

// The strictest of all caps decides, and says so.
func TestCapsBindAtOnce(t *testing.T) {
	six := func(f *fleet) {
		for i, z := range []string{"a", "a", "a", "b", "b", "c"} {
			f.add(fmt.Sprintf("n%d", i), map[string]string{zone: z, "pool": fmt.Sprint(i % 2)})
		}
		pool := func(s string) labels.Selector { return labels.SelectorFromSet(labels.Set{"pool": s}) }
		f.p.Groups = []Group{{Name: "even", Selector: pool("0")}, {Name: "odd", Selector: pool("1")}}
	}
	for _, c := range []struct {
		name  string
		caps  []Cap
		other []protocol.Cap
		want  []string
	}{
		{"each zone", []Cap{{Scope: Total, Max: number(6)}, {Scope: ByZone, Max: number(1)}}, nil, []string{"n0", "n4", "n5"}},
		{"one zone", []Cap{{Scope: Total, Max: number(6)}, {Scope: ByZone, Key: "a", Max: number(1)}}, nil, []string{"n0", "n3", "n4", "n5"}},
		{"each group", []Cap{{Scope: Total, Max: number(6)}, {Scope: ByGroup, Max: number(1)}}, nil, []string{"n0", "n1"}},
		{"one group", []Cap{{Scope: Total, Max: number(6)}, {Scope: ByGroup, Key: "odd", Max: number(1)}}, nil, []string{"n0", "n1", "n2", "n4"}},
		{"class", []Cap{{Scope: Total, Max: number(6)}, {Scope: ByClass, Max: intstr.FromString("50%")}}, nil, []string{"n0", "n1", "n2"}},
		{"two of one scope", []Cap{{Scope: Total, Max: number(6)}, {Scope: Total, Max: number(2)}}, nil, []string{"n0", "n2"}},
		{"of another rollout", []Cap{{Scope: Total, Max: number(6)}}, []protocol.Cap{{Key: "zone/a", Max: 1, From: "rollout-2"}}, []string{"n0", "n3", "n4", "n5"}},
	} {
		f := newFleet(t, 0)
		six(f)
		f.p.Caps, f.s.OtherCaps = c.caps, c.other
		d := f.plan()
		got := doing(d, protocol.EventAdmit)
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: admitted %v, want %v", c.name, got, c.want)
		}
		for _, n := range d.Nodes {
			if n.Do == "" && n.Why.Reason != "Cap" {
				t.Errorf("%s: node %q waits for %s", c.name, n.Node, n.Why.Reason)
			}
		}
	}
}

// Caps with keys say nothing of what they do not name: besides them one node goes at a time. One without a key covers every node, of whatever scope
// (R-RO-11).
func TestCapsWithKeysAloneAreNoLicence(t *testing.T) {
	five := *percent("50%")
	for name, c := range map[string]struct {
		caps []Cap
		want int
	}{
		"one zone":                {[]Cap{{Scope: ByZone, Key: "a", Max: number(2)}}, 1},
		"both zones":              {[]Cap{{Scope: ByZone, Key: "a", Max: number(2)}, {Scope: ByZone, Key: "b", Max: number(2)}}, 1},
		"one group":               {[]Cap{{Scope: ByGroup, Key: "all", Max: five}}, 1},
		"one class":               {[]Cap{{Scope: ByClass, Key: string(Intrusive), Max: five}}, 1},
		"one zone and a total":    {[]Cap{{Scope: ByZone, Key: "a", Max: number(1)}, {Scope: Total, Max: number(4)}}, 4},
		"one zone, and each of 2": {[]Cap{{Scope: ByZone, Key: "a", Max: number(1)}, {Scope: ByZone, Max: number(2)}}, 3},
		"each group":              {[]Cap{{Scope: ByGroup, Max: five}}, 5},
		"each class":              {[]Cap{{Scope: ByClass, Max: five}}, 5},
	} {
		f := newFleet(t, 0)
		for i := range 10 {
			f.add(fmt.Sprintf("n%d", i), map[string]string{zone: string("ab"[i%2])})
		}
		f.p.Caps = c.caps
		d := f.plan()
		if got := len(doing(d, protocol.EventAdmit)); got != c.want {
			t.Errorf("%s: %d nodes are admitted, want %d", name, got, c.want)
		}
		if c.want == 1 && !slices.ContainsFunc(d.Nodes, func(n Decision) bool {
			return n.Why.Reason == "Cap" && strings.Contains(n.Why.Message, "no cap of the policy covers every node")
		}) {
			t.Errorf("%s: no node says that the default binds: %s", name, d.Message)
		}
	}
}

// The slots of other rollouts count, and so do the caps that a stage has besides.
func TestCapsOfTheStageAndSlotsOfOthers(t *testing.T) {
	f := newFleet(t, 6)
	f.p.Caps = []Cap{{Scope: Total, Max: number(4)}}
	f.p.Stages = []Stage{{Name: "canary", Size: size(2), Caps: []Cap{{Scope: Total, Max: number(1)}}}, {Name: "rest"}}
	if got := doing(f.plan(), protocol.EventAdmit); len(got) != 1 {
		t.Fatalf("admitted %v in the canary stage, want 1", got)
	}
	f = newFleet(t, 6)
	f.p.Caps = []Cap{{Scope: Total, Max: number(4)}}
	f.s.Ledger = protocol.Ledger{Epoch: 7, Slots: []protocol.Slot{
		{Node: "node-000", UID: "uid-node-000", Attempt: 6, Rollout: "rollout-2"}, {Node: "elsewhere", UID: "uid-elsewhere", Attempt: 7, Rollout: "rollout-2"},
	}}
	d := f.plan()
	if got := doing(d, protocol.EventAdmit); !slices.Equal(got, []string{"node-001", "node-002"}) {
		t.Errorf("admitted %v", got)
	}
	f.wantReason(d, "node-000", ReasonOther)
}

// Caps that are lowered and fleets that shrink block what comes next, and take no slot away.
func TestLoweredCapsTakeNothingBack(t *testing.T) {
	f := newFleet(t, 10)
	f.p.Caps = []Cap{{Scope: Total, Max: number(5)}}
	f.passes(2)
	for i := range f.s.Nodes {
		f.silent[f.s.Nodes[i].Name] = true
	}
	f.p.Caps[0].Max = number(1)
	f.remove("node-008")
	f.remove("node-009")
	if d := f.pass(); len(d.Ledger.Slots) != 5 || len(doing(d, protocol.EventRevoke)) != 0 {
		t.Errorf("%d slots, want the 5 that there were: %v", len(d.Ledger.Slots), d.Nodes)
	}
	clear(f.silent)
	f.passes(200, Completed)
}

// Serial nodes go one at a time whatever the caps say (R-RO-24), and never leave fewer than a majority (R-RO-25).
func TestSerialNodesKeepTheirQuorum(t *testing.T) {
	for _, c := range []struct {
		nodes, away int
		lose        bool
		want        int
		reason      Reason
	}{
		{5, 0, false, 1, "OneAtATime"},
		{5, 1, false, 1, "OneAtATime"},
		{5, 2, false, 0, "Quorum"},
		{3, 0, false, 1, "OneAtATime"},
		{3, 1, false, 0, "Quorum"},
		{2, 0, false, 0, "Quorum"},
		{1, 0, false, 0, "Quorum"},
		{2, 0, true, 1, "OneAtATime"},
		{1, 0, true, 1, ""},
	} {
		f := newFleet(t, 0)
		for i := range c.nodes {
			n := f.add(fmt.Sprintf("cp%d", i), map[string]string{controlPlane: ""})
			if i >= c.nodes-c.away {
				n.Away = "not ready"
			}
		}
		f.p.Caps, f.p.LoseQuorum = []Cap{{Scope: Total, Max: number(50)}}, c.lose
		d := f.plan()
		if got := len(doing(d, protocol.EventAdmit)); got != c.want {
			t.Errorf("%d nodes, %d away: %d admitted, want %d", c.nodes, c.away, got, c.want)
		}
		for _, n := range d.Nodes {
			if n.Do == "" && n.Why.Reason != c.reason && n.Why.Reason != ReasonAway {
				t.Errorf("%d nodes, %d away: %q waits for %s: %s", c.nodes, c.away, n.Node, n.Why.Reason, n.Why.Message)
			}
		}
	}
}

// Keys are those of the slot that a node gets.
func TestKeysAreThoseOfTheSlot(t *testing.T) {
	f := newFleet(t, 0)
	f.p.Target.Class = NonIntrusive
	f.p.Caps = []Cap{{Scope: Total, Max: number(3)}}
	f.add("cp", map[string]string{zone: "a", controlPlane: ""})
	f.add("worker", map[string]string{zone: "b"})
	f.p.LoseQuorum = true
	d := f.plan()
	if len(d.Ledger.Slots) != 2 {
		t.Fatalf("%d slots, want 2", len(d.Ledger.Slots))
	}
	for _, s := range d.Ledger.Slots {
		keys := f.p.Keys(*f.node(s.Node))
		slices.Sort(keys)
		if !slices.Equal(keys, s.Keys) {
			t.Errorf("node %q: keys %q, the slot has %q", s.Node, keys, s.Keys)
		}
	}
	f.p.Groups[0].Selector = labels.Nothing()
	if got, want := f.p.Keys(*f.node("worker")), []string{"class/Intrusive", "zone/b"}; !slices.Equal(got, want) {
		t.Errorf("a node of no group: keys %q, want %q: what is not known is taken to be intrusive", got, want)
	}
}
