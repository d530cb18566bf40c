// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// brokenBy2 is a fleet whose first node v2 has broken; v3 is to come.
func brokenBy2(t *testing.T, attempts int) *fleet {
	f := newFleet(t, 4)
	f.p.Completed, f.p.Attempts, f.p.RetryAfter, f.p.CommitWithin = Revision{}, attempts, time.Minute, time.Minute
	f.fails = always(protocol.EventBroke)
	for i := 0; i < 50 && f.last.Counts.Broken == 0; i++ {
		f.pass()
	}
	f.p.Target = revision("v3")
	return f
}

// A broken node that has died since is asked again after a rest each time, that grows as that of any other node; when it has not answered as often as it may
// fail, the rollout says that none of the broken ones can be tried, and goes on when somebody gives it up (R-RO-28).
func TestBrokenNodeThatDiesHoldsUpItsSuccessorVisibly(t *testing.T) {
	f := brokenBy2(t, 3)
	f.silent["node-000"] = true
	retries := 0
	for range 6 * 60 * 4 { // four hours
		retries += len(doing(f.pass(), protocol.EventRetry))
	}
	if retries < 4 || retries > 24 {
		t.Errorf("tried again %d times in four hours, want a few", retries)
	}
	f.wantReason(f.last, "node-001", ReasonStranded)
	if why := f.of(f.last, "node-001").Why.Message; !strings.Contains(why, `"node-000"`) {
		t.Errorf("%q does not name the node", why)
	}
	if e, ok := f.last.Why("node-001"); !ok || !slices.Contains(e.Verbs, Acknowledge) {
		t.Errorf("what can be asked for: %v, want Acknowledge", e.Verbs)
	}
	for i := range 200 {
		f.p.Verb = Verb{Request: "gone-" + string(rune('a'+i)), Do: Acknowledge, Node: "node-000"}
		if d := f.pass(); d.Progress.Refused == "" {
			break
		}
	}
	f.passes(200)
	if f.runs("v3") != 3 {
		t.Errorf("%d nodes run v3, want 3: %s", f.runs("v3"), f.last.Message)
	}
}

// A broken node that dies in its next attempt, or loses its record, is stranded as well, and so is one whose revision has no successor.
func TestBrokenNodeThatDiesInItsNextAttemptIsSaid(t *testing.T) {
	for name, dies := range map[string]func(f *fleet){
		"applying": func(f *fleet) {
			for i := 0; i < 50 && f.node("node-000").Shadow.Report.Phase != protocol.PhaseApplying; i++ {
				f.pass()
			}
		},
		"without a record": func(f *fleet) {
			sh := protocol.NewShadow("node-000", "uid-node-000", f.s.Ledger)
			f.node("node-000").Shadow = &sh
		},
		"without a successor": func(f *fleet) { f.p.Target = revision("v2") },
	} {
		f := brokenBy2(t, 3)
		f.p.ApplyWithin = 10 * time.Minute
		dies(f)
		f.silent["node-000"] = true
		f.passes(6)
		if n := f.of(f.last, "node-001"); n.Why.Reason == ReasonStranded {
			t.Errorf("%s: stranded at once: %s", name, n.Why.Message)
		}
		f.passes(6 * 60 * 4)
		if n := f.of(f.last, "node-001"); n.Why.Reason != ReasonStranded || !strings.Contains(n.Why.Message, `"node-000"`) || len(f.begun) != 1 {
			t.Errorf("%s: begun %v, the next node waits for %s: %s", name, f.begun, n.Why.Reason, n.Why.Message)
		}
	}
}

// A node that answers after all gets the revision, and the others follow.
func TestBrokenNodeThatComesBackIsRescued(t *testing.T) {
	f := brokenBy2(t, 3)
	f.silent["node-000"] = true
	f.passes(6 * 60 * 4)
	f.wantReason(f.last, "node-001", ReasonStranded)
	f.silent["node-000"] = false
	f.passes(6*60*4, Completed)
	if f.runs("v3") != 4 || f.begun[0] != "node-000" || len(f.begun) != 4 {
		t.Errorf("%d nodes run v3, begun %v", f.runs("v3"), f.begun)
	}
}

// Who accepts that the successor has failed on the broken nodes as well lets it go on to the others.
func TestAcceptEndsTheRescue(t *testing.T) {
	f := brokenBy2(t, 1)
	f.fails = func(node, _ string) protocol.Event {
		if node == "node-000" {
			return protocol.EventBroke
		}
		return ""
	}
	f.passes(100, Frozen)
	f.p.Verb = Verb{Request: "go-on", Do: Accept}
	f.passes(1)
	f.p.Caps = []Cap{{Scope: Total, Max: number(2)}}
	f.passes(100)
	if f.runs("v3") != 3 {
		t.Errorf("%d nodes run v3, want 3: %s", f.runs("v3"), f.last.Message)
	}
}
