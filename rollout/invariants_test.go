// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"cmp"
	"slices"
	"time"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// wantInWindow: outside the windows, and when a cycle does not fit any more, nothing is begun; outside them nothing is granted or tried again either,
// and what was granted is taken back. What was committed goes on. The windows of random fleets close 12 minutes after noon, a cycle takes 2.
func (f *fleet) wantInWindow(d Decisions) {
	f.t.Helper()
	clock := f.now.Sub(start())
	if len(f.p.Windows) == 0 || clock <= 10*time.Minute {
		return
	}
	for _, n := range d.Nodes {
		begins := n.Do == protocol.EventAdmit || n.Do == protocol.EventRetry
		if begins || clock >= 12*time.Minute && n.Do == protocol.EventGrant {
			f.t.Fatalf("I13: %s of node %q %s after noon", n.Do, n.Node, clock)
		}
		if waits := n.State == protocol.Granted || n.State == protocol.Admitted; clock >= 12*time.Minute && waits && n.Do != protocol.EventRevoke && n.Do != protocol.EventAdmit {
			f.t.Fatalf("I13: node %q is %s, %q %s after noon", n.Node, n.State, n.Do, clock)
		}
	}
}

// wantPassed: a stage is passed when all gates allow it, its soak is over and nothing of it is in flight, or somebody has promoted it.
func (f *fleet) wantPassed(d Decisions) {
	f.t.Helper()
	before := f.s.Progress
	if len(f.p.Stages) == 0 || !slices.Equal(before.Targets, d.Progress.Targets) {
		return
	}
	for i := before.Stage; i < d.Progress.Stage; i++ {
		stage := f.p.Stages[i]
		f.wantLanded(d, i)
		if d.Progress.Promoted > i {
			continue
		}
		if slices.ContainsFunc(f.s.Gates, func(v Verdict) bool { return v.Answer != Allow }) {
			f.t.Fatalf("I6: stage %q is passed, and the gates say %v", stage.Name, f.s.Gates)
		}
		if stage.Approval || stage.Soak > 0 && (before.SoakSince.IsZero() || f.now.Sub(before.SoakSince) < stage.Soak) {
			f.t.Fatalf("I6: stage %q is passed before its soak or approval, it soaks since %s", stage.Name, before.SoakSince)
		}
	}
}

// wantLanded: nothing of a stage is in flight.
func (f *fleet) wantLanded(d Decisions, stage int) {
	f.t.Helper()
	for _, n := range d.Nodes {
		slot, begun := d.Ledger.Slot(n.UID), d.Progress.Nodes[n.UID].Stage
		flies := slot != nil && slot.State == "" && n.State != protocol.Gone && n.Do != protocol.EventAdmit
		if flies && begun == stage && slices.Contains(f.s.Progress.Members, n.UID) {
			f.t.Fatalf("I6: stage %q is passed while node %q is %s", f.p.Stages[stage].Name, n.Node, n.State)
		}
	}
}

// wantOrder: of fresh nodes for which the same caps count, none is begun while one that comes before it waits for a cap.
func (f *fleet) wantOrder(d Decisions) {
	f.t.Helper()
	for _, a := range d.Nodes {
		if a.Do != protocol.EventAdmit || !f.fresh(d, a) {
			continue
		}
		for _, b := range d.Nodes {
			if b.Why.Reason != "Cap" || b.Do != "" || !f.fresh(d, b) || a.Group != b.Group || a.Stage != b.Stage {
				continue
			}
			x, y := f.node(a.Node), f.node(b.Node)
			_, serialX := x.Labels[controlPlane]
			_, serialY := y.Labels[controlPlane]
			if x.Labels[zone] == y.Labels[zone] && serialX == serialY && cmp.Or(DefaultOrder(x, y), cmp.Compare(x.Name, y.Name)) > 0 {
				f.t.Fatalf("I6: node %q is begun, and %q, which comes before it, waits: %s", a.Node, b.Node, b.Why.Message)
			}
		}
	}
}

func (f *fleet) fresh(d Decisions, n Decision) bool {
	return d.Progress.Nodes[n.UID].Attempts == 0 && slices.Contains(d.Progress.Members, n.UID)
}

// wantFrozen: what has failed on a critical node, or has tripped the detector, closes the ledger before anything else is begun; and no node has two
// outcomes.
func (f *fleet) wantFrozen(d Decisions) {
	f.t.Helper()
	bad, seen := 0, map[string]bool{}
	for i, o := range d.Progress.Outcomes {
		if seen[o.UID] {
			f.t.Fatalf("I7: node %q has two outcomes: %v", o.Node, d.Progress.Outcomes)
		}
		seen[o.UID] = true
		if i >= d.Progress.Accepted && o.Result != Succeeded {
			bad++
		}
	}
	if closed := d.Ledger.ClosedFor(f.p.UID) != nil; (bad >= 2 || d.Progress.Frozen != "") && !closed {
		f.t.Fatalf("I5: %d nodes have failed, frozen by %q, and the ledger is open", bad, d.Progress.Frozen)
	}
}
