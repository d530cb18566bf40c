// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"time"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// wantDecided checks decisions by what they were decided on.
func (c *chaos) wantDecided(d Decisions, s Snapshot) {
	c.t.Helper()
	if n := d.Counts; n.Done+n.InFlight+n.Waiting+n.Deferred+n.Failed+n.Broken+n.Lost != len(s.Nodes) || n.Selected != len(s.Nodes) {
		c.t.Fatalf("I7: the counts do not add up to %d: %+v", len(s.Nodes), n)
	}
	seen := map[string]bool{}
	for _, o := range d.Progress.Outcomes {
		if seen[o.UID] {
			c.t.Fatalf("I7: node %q has two outcomes: %v", o.Node, d.Progress.Outcomes)
		}
		seen[o.UID] = true
	}
	closed, stopped := d.Ledger.ClosedFor(c.p.UID) != nil, slices.Contains([]Phase{Paused, Frozen, Aborting, Aborted}, d.Phase)
	for _, n := range d.Nodes {
		if (closed || stopped) && (n.Do == protocol.EventAdmit || n.Do == protocol.EventGrant || n.Do == protocol.EventRetry) {
			c.t.Fatalf("I5: %s of node %q while the rollout is %s and the ledger closed by %v", n.Do, n.Node, d.Phase, d.Ledger.Closures)
		}
	}
	if known := d.Progress.Stopped == s.Progress.Stopped; stopped && known && !closed {
		c.t.Fatalf("I5: the rollout is %s, which is stored, and the ledger is open", d.Phase)
	}
}

// wantLedger checks the next version of the ledger against the one before, and against what is true.
func (c *chaos) wantLedger(before protocol.Ledger, d Decisions) {
	c.t.Helper()
	for _, limit := range d.Caps {
		if used := d.Ledger.Used(limit.Key, nil); used > limit.Max && used > before.Used(limit.Key, nil) {
			c.t.Fatalf("I1: %d slots count for %q, the limit is %d", used, limit.Key, limit.Max)
		}
	}
	for _, s := range before.Slots {
		live := c.shadows[s.UID][len(c.shadows[s.UID])-1]
		if _, err := before.Release(live); err != nil && d.Ledger.Slot(s.UID) == nil {
			c.t.Fatalf("I11: the slot of %q was taken back: %v", s.Node, err)
		}
	}
	for _, s := range d.Ledger.Slots {
		if before.Slot(s.UID) == nil {
			c.wantTurn(s.UID, d)
		}
	}
}

// wantTurn checks that the stages before that of a node are over, by what is true: all of their nodes, or as many as they take, run the revision.
func (c *chaos) wantTurn(uid string, d Decisions) {
	c.t.Helper()
	i := slices.IndexFunc(d.Nodes, func(n Decision) bool { return n.UID == uid })
	group := int(d.Nodes[i].Group)
	for stage := range c.p.Stages {
		if c.takes(stage, group) {
			return // its turn has come as soon as the stages before are over
		}
		total, done := 0, 0
		for _, n := range d.Nodes {
			if !c.takes(stage, int(n.Group)) {
				continue
			}
			total++
			if live := c.shadows[n.UID]; live[len(live)-1].Report.Phase.AtRest() && runs(live) != runs(nil) {
				done++
			}
		}
		if c.p.Stages[stage].Size == nil && done < total {
			c.t.Fatalf("I6: node %q of group %q is begun, and %d of %d nodes of stage %q are done: %+v", d.Nodes[i].Node, c.p.Groups[group].Name, done, total, c.p.Stages[stage].Name, c.shadows)
		}
	}
}

func (c *chaos) takes(stage, group int) bool {
	return len(c.p.Stages[stage].Groups) == 0 || slices.Contains(c.p.Stages[stage].Groups, c.p.Groups[group].Name)
}

// comeToRest lets one controller see what is true, and everybody do what they should, up to the end.
func (c *chaos) comeToRest(seed uint64) {
	c.t.Helper()
	var d Decisions
	for i := range 60*len(c.s.Nodes) + 200 {
		if d.Phase == Paused || d.Phase == Aborted {
			o := c.rollouts[len(c.rollouts)-1]
			o.verb = Verb{Request: "resume" + c.now.String(), Do: Resume}
			c.rollouts = append(c.rollouts, o)
		}
		d, _ = c.controller(false)
		for i := range c.s.Nodes {
			c.moveAgent(&c.s.Nodes[i])
		}
		c.now = c.now.Add(20 * time.Second)
		if d.Phase == Completed && d.Counts.Done == len(c.s.Nodes) && i > 3 {
			break
		}
	}
	if d.Phase != Completed || d.Counts.Done != len(c.s.Nodes) || len(c.ledgers[len(c.ledgers)-1].Slots) > 0 {
		c.t.Fatalf("I9: seed %d: the rollout does not come to its end: %s, %s: %v", seed, d.Phase, d.Message, c.ledgers[len(c.ledgers)-1])
	}
	for _, n := range c.s.Nodes {
		if c.applied[n.Name] > 1 {
			c.t.Fatalf("I8: node %q has applied the revision %d times, want once", n.Name, c.applied[n.Name])
		}
	}
}
