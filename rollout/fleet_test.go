// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	. "github.com/belayproject/belay/rollout" //nolint:revive // the fleet speaks of nothing else
	"github.com/belayproject/belay/rollout/protocol"
)

const (
	zone         = "topology.kubernetes.io/zone"
	controlPlane = "node-role.kubernetes.io/control-plane"
)

// A fleet is nodes whose agents do at once what they are told, and a controller that does what Plan says.
type fleet struct {
	t   *testing.T
	s   Snapshot
	p   Policy
	now time.Time
	// fails says how a revision ends on a node; nil and an empty event mean well.
	fails func(node, revision string) protocol.Event
	// silent agents do nothing, stuck nodes are never empty, refusing ones refuse.
	silent, stuck, refusing map[string]bool
	begun                   []string // nodes, in the order of their admission
	last                    Decisions
	asked                   remembered
	cordoned                map[string]bool
}

func start() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) } // a Monday

func revision(name string) Revision { return Revision{Name: name, Digest: "sha256:" + name} }

func number(n int) intstr.IntOrString { return intstr.FromInt32(int32(n)) }

func size(n int) *intstr.IntOrString { v := number(n); return &v }

// newFleet has n nodes of group "all" that run v1 and should run v2.
func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	f := &fleet{
		t: t, now: start(), silent: map[string]bool{}, stuck: map[string]bool{}, refusing: map[string]bool{}, cordoned: map[string]bool{},
		p: Policy{UID: "rollout-1", Target: revision("v2"), Completed: revision("v1"), Groups: []Group{{Name: "all", Selector: labels.Everything()}}, Detectors: []Detector{}},
	}
	for i := range n {
		f.add(fmt.Sprintf("node-%03d", i), nil)
	}
	return f
}

func (f *fleet) add(name string, labels map[string]string) *Node {
	f.s.Nodes = append(f.s.Nodes, Node{
		Name: name, UID: "uid-" + name, Labels: labels, Runs: protocol.Revision{Name: "v1", Digest: "sha256:v1"}, Health: Verdict{Answer: Allow},
		Shadow: &protocol.Shadow{Node: name, UID: "uid-" + name, Report: protocol.Report{Known: true}},
	})
	return &f.s.Nodes[len(f.s.Nodes)-1]
}

func (f *fleet) node(name string) *Node {
	f.t.Helper()
	for i := range f.s.Nodes {
		if f.s.Nodes[i].Name == name {
			return &f.s.Nodes[i]
		}
	}
	f.t.Fatalf("there is no node %q", name)
	return nil
}

func (f *fleet) remove(name string) {
	f.s.Nodes = slices.DeleteFunc(f.s.Nodes, func(n Node) bool { return n.Name == name })
}

// plan plans, and stores what was decided.
func (f *fleet) plan() Decisions {
	f.t.Helper()
	d, err := Plan(f.s, f.p, f.now)
	if err != nil {
		f.t.Fatal(err)
	}
	f.check(d)
	f.s.Ledger, f.s.Progress, f.last = d.Ledger, d.Progress, d
	return d
}

// pass plans, does what was decided, and has the agents do one thing each.
func (f *fleet) pass() Decisions {
	f.t.Helper()
	d := f.plan()
	for _, n := range d.Nodes {
		f.obey(n)
	}
	for i := range f.s.Nodes {
		if n := &f.s.Nodes[i]; n.Shadow != nil && !f.silent[n.Name] {
			f.agent(n)
		}
	}
	f.now = f.now.Add(10 * time.Second)
	return d
}

// passes makes so many passes, or as many as it takes to come to a phase.
func (f *fleet) passes(most int, until ...Phase) Decisions {
	f.t.Helper()
	for range most {
		if d := f.pass(); slices.Contains(until, d.Phase) {
			return d
		}
	}
	if len(until) > 0 {
		f.t.Fatalf("the rollout is %s after %d passes, want %s: %s", f.last.Phase, most, until, f.last.Message)
	}
	return f.last
}

// obey does what a controller does.
func (f *fleet) obey(d Decision) {
	f.t.Helper()
	if d.Do == protocol.EventGone {
		next, err := f.s.Ledger.Gone(d.UID)
		if err != nil {
			f.t.Fatal(err)
		}
		f.s.Ledger = next
		return
	}
	if d.Cordon || d.Uncordon {
		f.cordoned[d.Node] = d.Cordon
	}
	n := f.node(d.Node)
	n.Drain = Drain{Empty: d.Cordon && (!f.stuck[d.Node] || d.Force)}
	if f.stuck[d.Node] && d.Cordon {
		n.Drain.Blocked = `pod "shop/web" by budget "web"`
	}
	if n.Shadow == nil {
		return
	}
	orders, err := f.orders(*n.Shadow, d)
	if err != nil {
		f.t.Fatalf("what Plan decides is refused: %v", err)
	}
	sh := *n.Shadow
	sh.Orders = orders
	n.Shadow = &sh
	if d.Do == protocol.EventAdmit {
		f.begun = append(f.begun, d.Node)
	}
}

func (f *fleet) orders(sh protocol.Shadow, d Decision) (protocol.Orders, error) {
	switch slot := f.s.Ledger.Slot(d.UID); d.Do {
	case protocol.EventStage:
		return sh.Prefetch(d.Revision.Ref().String())
	case protocol.EventGrant:
		return sh.Give(*slot, d.Revision.Ref().String(), d.Revert)
	case protocol.EventRevoke:
		return sh.Revoke(slot.Attempt)
	case protocol.EventProceed:
		return sh.Go(slot.Attempt)
	case protocol.EventUndo:
		return sh.Stop(slot.Attempt)
	}
	return sh.Orders, nil
}

// agent does the next thing that the agent of a node does.
func (f *fleet) agent(n *Node) {
	sh := *n.Shadow
	event := f.nextOf(n, sh)
	if !sh.Report.Known {
		sh.Report, _ = protocol.Recall(sh, protocol.Report{})
		n.Shadow = &sh
		return
	}
	report, err := sh.Answer(event)
	if err != nil {
		return
	}
	sh.Report = report
	n.Shadow = &sh
	if event == protocol.EventApplied {
		n.Runs = protocol.ParseRevision(report.Revision)
	}
}

func (f *fleet) nextOf(n *Node, sh protocol.Shadow) protocol.Event {
	r := sh.Report
	switch {
	case sh.Open() && f.refusing[n.Name]:
		return protocol.EventRefuse
	case sh.Open() && (r.Phase.AtRest() || r.Phase == protocol.PhaseFailedBroken):
		return protocol.EventCommit
	case r.Phase == protocol.PhaseCommitted && sh.Orders.Undo >= r.Attempt:
		return protocol.EventUndone
	case r.Phase == protocol.PhaseCommitted:
		return protocol.EventApply
	case r.Phase == protocol.PhaseApplying:
		if f.fails != nil {
			if e := f.fails(n.Name, protocol.ParseRevision(r.Revision).Name); e != "" {
				return e
			}
		}
		return protocol.EventApplied
	case r.Phase == protocol.PhaseVerifying:
		return protocol.EventVerified
	}
	return protocol.EventStaged
}

// check says what must be true of all decisions.
func (f *fleet) check(d Decisions) {
	f.t.Helper()
	c := d.Counts
	if sum := c.Done + c.InFlight + c.Waiting + c.Deferred + c.Failed + c.Broken + c.Lost; sum != c.Selected {
		f.t.Fatalf("I7: the counts add up to %d, want %d: %+v", sum, c.Selected, c)
	}
	if err := d.Ledger.Validate(); err != nil {
		f.t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, n := range d.Nodes {
		if n.Why == nil || n.Why.Reason == ReasonNone || n.Why.Message == "" {
			f.t.Fatalf("node %q has no reason: %+v", n.Node, n)
		}
		if seen[n.UID] {
			f.t.Fatalf("node %q is decided on twice", n.Node)
		}
		seen[n.UID] = true
	}
	for _, s := range d.Ledger.Slots {
		if !seen[s.UID] && s.Rollout == f.p.UID {
			f.t.Fatalf("the slot of node %q is not decided on", s.Node)
		}
	}
}

// of returns the decision on a node.
func (f *fleet) of(d Decisions, name string) Decision {
	f.t.Helper()
	for _, n := range d.Nodes {
		if n.Node == name {
			return n
		}
	}
	f.t.Fatalf("there is no decision on node %q", name)
	return Decision{}
}

func (f *fleet) wantReason(d Decisions, name string, want Reason) {
	f.t.Helper()
	if n := f.of(d, name); n.Why.Reason != want || n.Do != "" {
		f.t.Fatalf("node %q: %q, %s: %s, want it to wait for %s", name, n.Do, n.Why.Reason, n.Why.Message, want)
	}
}

// doing are the names of the nodes for which an event is asked.
func doing(d Decisions, e protocol.Event) []string {
	var names []string
	for _, n := range d.Nodes {
		if n.Do == e {
			names = append(names, n.Node)
		}
	}
	return names
}

func (f *fleet) runs(revision string) int {
	n := 0
	for _, node := range f.s.Nodes {
		if node.Runs.Name == revision {
			n++
		}
	}
	return n
}
