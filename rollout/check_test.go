// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// controlPlanes has so many nodes of the control plane, the last of which are away.
func controlPlanes(t *testing.T, nodes, away int) *fleet {
	f := newFleet(t, 0)
	for i := range nodes {
		n := f.add(fmt.Sprintf("cp%d", i), map[string]string{controlPlane: ""})
		if i >= nodes-away {
			n.Away = "not ready"
		}
	}
	f.p.Caps = []Cap{{Scope: Total, Max: number(50)}}
	return f
}

// Each check is made on the policy and the snapshot alone. Enforced it keeps everything from being begun, as a warning nothing; and it is said either way
// (R-RO-25).
func TestChecksEnforceOrWarn(t *testing.T) {
	forced := func(f *fleet) { f.p.StuckDrain = ForceDrain }
	quiet := func(f *fleet) { f.p.StuckDrain, f.p.Target.Class = ForceDrain, NonIntrusive }
	for name, c := range map[string]struct {
		fleet  *fleet
		change func(*fleet)
		set    func(*Checks, CheckMode)
		finds  string // empty for nothing
		says   string
	}{
		"no control plane":   {fleet: newFleet(t, 3), set: func(c *Checks, m CheckMode) { c.ControlPlane = m }, finds: "ControlPlane", says: "none of the 3 nodes"},
		"a control plane":    {fleet: controlPlanes(t, 3, 0), set: func(c *Checks, m CheckMode) { c.ControlPlane = m }},
		"forced drains":      {fleet: newFleet(t, 3), change: forced, set: func(c *Checks, m CheckMode) { c.Data = m }, finds: "Data", says: "3 nodes are drained"},
		"no drain to force":  {fleet: newFleet(t, 3), change: quiet, set: func(c *Checks, m CheckMode) { c.Data = m }},
		"no forced drain":    {fleet: newFleet(t, 3), set: func(c *Checks, m CheckMode) { c.Data = m }},
		"a zone misspelt":    {fleet: newFleet(t, 3), change: strayZone, set: func(c *Checks, m CheckMode) { c.Caps = m }, finds: "Caps", says: `caps[1] is for zone "estward"`},
		"a stage's zone":     {fleet: newFleet(t, 3), change: strayZoneOfStage, set: func(c *Checks, m CheckMode) { c.Caps = m }, finds: "Caps", says: `stages[0].caps[0] is for zone "estward"`},
		"a zone":             {fleet: newFleet(t, 3), change: zoneThatIs, set: func(c *Checks, m CheckMode) { c.Caps = m }},
		"no third of five":   {fleet: controlPlanes(t, 5, 2), set: func(c *Checks, m CheckMode) { c.Quorum = m }, finds: "Quorum", says: "3 of 5 are available, and a majority is 3"},
		"the second of five": {fleet: controlPlanes(t, 5, 1), set: func(c *Checks, m CheckMode) { c.Quorum = m }},
	} {
		for _, mode := range []CheckMode{Enforce, Warn} {
			f := *c.fleet
			f.t = t
			if c.change != nil {
				c.change(&f)
			}
			c.set(&f.p.Checks, mode)
			d, err := Plan(f.s, f.p, f.now)
			if err != nil {
				t.Fatal(err)
			}
			begun, wanted := len(doing(d, protocol.EventAdmit)) > 0, c.finds == "" || mode == Warn
			if begun != wanted {
				t.Errorf("%s, %s: nodes are begun: %t, want %t", name, mode, begun, wanted)
			}
			wantFinding(t, d, name, c.finds, c.says, mode)
		}
	}
}

// strayZone caps a zone that no node is in, zoneThatIs one that a node is in.
func strayZone(f *fleet) {
	f.p.Caps = []Cap{{Scope: Total, Max: number(2)}, {Scope: ByZone, Key: "estward", Max: number(1)}}
}

func strayZoneOfStage(f *fleet) {
	f.p.Stages = []Stage{{Name: "one", Caps: []Cap{{Scope: ByZone, Key: "estward", Max: number(1)}}}}
}

func zoneThatIs(f *fleet) {
	strayZone(f)
	f.node("node-001").Labels = map[string]string{zone: "estward"}
}

func wantFinding(t *testing.T, d Decisions, name, check, says string, mode CheckMode) {
	t.Helper()
	if check == "" {
		if len(d.Findings) != 0 || strings.Contains(d.Message, "check ") {
			t.Errorf("%s, %s: findings %+v, message %q, want none", name, mode, d.Findings, d.Message)
		}
		return
	}
	if len(d.Findings) != 1 || d.Findings[0].Check != check || d.Findings[0].Mode != mode || !strings.Contains(d.Findings[0].Message, says) {
		t.Errorf("%s, %s: findings %+v, want one of %s with %q", name, mode, d.Findings, check, says)
		return
	}
	if !strings.Contains(d.Message, d.Findings[0].Message) {
		t.Errorf("%s, %s: message %q, want the finding in it", name, mode, d.Message)
	}
	reason := map[string]Reason{"Quorum": "Quorum"}[check]
	if reason == "" {
		reason = ReasonCheck
	}
	if mode == Enforce && (d.Waiting[reason] == 0 || reason == ReasonCheck && (d.Phase != Pending || d.Reason != ReasonCheck)) {
		t.Errorf("%s, %s: phase %s, reason %s, waiting for %v, want nodes that wait for %s", name, mode, d.Phase, d.Reason, d.Waiting, reason)
	}
}

// LoseQuorum is a warning for the quorum, and without anything it is enforced; findings come in the order of the fields, and end with what they are
// about (R-RO-25).
func TestFindingsOfTheQuorum(t *testing.T) {
	f := controlPlanes(t, 3, 1)
	if d := f.plan(); len(d.Findings) != 1 || d.Findings[0].Mode != Enforce {
		t.Errorf("findings %+v, want the quorum to be enforced", d.Findings)
	}
	f.p.LoseQuorum, f.p.StuckDrain = true, ForceDrain
	f.p.Checks = Checks{ControlPlane: Enforce, Data: Warn}
	d := f.plan()
	if len(d.Findings) != 2 || d.Findings[0].Check != "Quorum" || d.Findings[0].Mode != Warn || d.Findings[1].Check != "Data" {
		t.Errorf("findings %+v, want warnings of Quorum and Data", d.Findings)
	}
	if len(doing(d, protocol.EventAdmit)) != 1 {
		t.Errorf("%v are begun, want one", doing(d, protocol.EventAdmit))
	}
	f.node("cp2").Away = ""
	f.p.StuckDrain = "Hold"
	f.passes(100, Completed)
	f.node("cp0").Away, f.node("cp1").Away = "not ready", "not ready"
	if d := f.plan(); len(d.Findings) != 0 {
		t.Errorf("findings %+v when all have had their turn, want none", d.Findings)
	}
}

// A node at its turn is away for a while, and is not held against the next one beforehand (R-RO-25).
func TestNodeAtItsTurnIsNoLackOfQuorum(t *testing.T) {
	f := controlPlanes(t, 3, 0)
	d := f.plan()
	f.node(doing(d, protocol.EventAdmit)[0]).Away = "not ready"
	if d := f.plan(); len(d.Findings) != 0 || d.Counts.InFlight != 1 {
		t.Errorf("findings %+v with %d in flight, want none with one", d.Findings, d.Counts.InFlight)
	}
}
