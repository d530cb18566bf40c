// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

func always(e protocol.Event) func(string, string) protocol.Event {
	return func(_, revision string) protocol.Event {
		if revision == "v2" {
			return e
		}
		return ""
	}
}

// A failing revision is tried again on the node that it failed on, and on no other; when it has failed there often enough, the rollout freezes
// (R-RO-28).
func TestFailingRevisionIsNotTriedOnFreshNodes(t *testing.T) {
	f := newFleet(t, 10)
	f.fails = always(protocol.EventFellBack)
	d := f.passes(300, Frozen)
	if !slices.Equal(f.begun, []string{"node-000", "node-000", "node-000"}) {
		t.Errorf("begun %v, want node-000 three times", f.begun)
	}
	if len(d.Progress.Outcomes) != 1 || d.Progress.Outcomes[0].Result != FailedClean || d.Counts.Failed != 1 {
		t.Errorf("outcomes %v, counts %+v: a node counts once, whatever its retries", d.Progress.Outcomes, d.Counts)
	}
	if d = f.pass(); d.Ledger.ClosedFor(f.p.UID) == nil || !d.Acknowledged {
		t.Errorf("closures %v, acknowledged %t", d.Ledger.Closures, d.Acknowledged)
	}
	f.wantReason(d, "node-001", "Frozen")
}

func TestRetriesRestLongerEachTime(t *testing.T) {
	f := newFleet(t, 2)
	f.p.RetryAfter = 10 * time.Minute
	f.fails = always(protocol.EventFellBack)
	var rests []time.Duration
	for range 400 {
		e := f.s.Progress.Nodes["uid-node-000"]
		d := f.pass()
		if n := d.Progress.Nodes["uid-node-000"]; n.Attempts > e.Attempts {
			rests = append(rests, n.NotBefore.Sub(f.now)+10*time.Second)
			if d.After == 0 && n.Attempts < 3 {
				t.Error("Plan is not called again after the rest")
			}
		}
	}
	if len(rests) != 3 {
		t.Fatalf("failed %d times, want 3", len(rests))
	}
	for i, rest := range rests {
		if limit := 10 * time.Minute << i; rest <= 0 || rest > limit {
			t.Errorf("rest %d is %s, want up to %s", i, rest, limit)
		}
	}
	if share := func(i int) time.Duration { return rests[i].Round(time.Minute) >> i }; share(0) == share(1) && share(1) == share(2) {
		t.Errorf("rests %s: each is the same share of its limit, so that nodes which have met once meet again", rests)
	}
}

// After a success in the stage, nodes that have failed wait behind fresh ones.
func TestRetriesQueueBehindFreshNodes(t *testing.T) {
	f := newFleet(t, 4)
	f.p.RetryAfter = time.Second
	failed := false
	f.fails = func(node, _ string) protocol.Event {
		if node == "node-001" && !failed {
			failed = true
			return protocol.EventFellBack
		}
		return ""
	}
	f.passes(100, Completed)
	if want := []string{"node-000", "node-001", "node-002", "node-003", "node-001"}; !slices.Equal(f.begun, want) {
		t.Errorf("begun %v, want %v", f.begun, want)
	}
}

// A broken node is tried again in its own slot, and at last brought back to what is known to be good.
func TestBrokenNodeIsTriedInPlaceAndBroughtBack(t *testing.T) {
	f := newFleet(t, 3)
	f.fails = always(protocol.EventBroke)
	reverted := false
	for range 300 {
		d := f.pass()
		for _, n := range d.Nodes {
			reverted = reverted || n.Revert && n.Revision.Name == "v1"
		}
		if len(d.Ledger.Slots) > 1 {
			t.Fatalf("%d slots, want 1", len(d.Ledger.Slots))
		}
	}
	if !reverted || f.runs("v1") != 3 || f.runs("v2") != 0 || f.last.Phase != Frozen {
		t.Errorf("reverted %t, %d nodes run v1, phase %s: %s", reverted, f.runs("v1"), f.last.Phase, f.last.Message)
	}
	if len(f.begun) != 1 || len(f.last.Progress.Outcomes) != 1 || f.last.Progress.Outcomes[0].Result != FailedBroken {
		t.Errorf("begun %v, outcomes %v", f.begun, f.last.Progress.Outcomes)
	}
}

// There is no way back from an irreversible revision, nor on a node whose agent knows none: the rollout freezes with the last attempt (R-RO-21).
func TestIrreversibleRevisionIsNotReverted(t *testing.T) {
	for what, set := range map[string]func(f *fleet){
		"revision": func(f *fleet) { f.p.Target.Irreversible = true },
		"node":     func(f *fleet) { f.node("node-000").Irreversible = true },
	} {
		f := newFleet(t, 2)
		set(f)
		f.fails = always(protocol.EventBroke)
		d := f.passes(300, Frozen)
		for range 20 {
			d = f.pass()
		}
		n := f.of(d, "node-000")
		if n.State != protocol.FailedBroken || n.Why.Reason != ReasonGivenUp || d.Counts.Broken != 1 || f.node("node-000").Shadow.Report.Attempt != 3 {
			t.Errorf("%s: %+v: %+v, counts %+v", what, n, n.Why, d.Counts)
		}
	}
}

// A silent agent is suspect after its deadline: that counts once as a failure, and keeps the slot.
func TestSilentNodeIsSuspectAndKeepsItsSlot(t *testing.T) {
	f := newFleet(t, 2)
	f.p.ApplyWithin = time.Minute
	f.passes(4)
	f.silent["node-000"] = true
	f.passes(200)
	s := f.s.Ledger.Slot("uid-node-000")
	if s == nil || s.State != protocol.SlotSuspect || len(f.last.Progress.Outcomes) != 1 || f.last.Progress.Outcomes[0].Result != Suspected {
		t.Fatalf("slot %+v, outcomes %v", s, f.last.Progress.Outcomes)
	}
	if f.last.Counts.Broken != 1 || len(f.begun) != 1 {
		t.Errorf("counts %+v, begun %v", f.last.Counts, f.begun)
	}
	f.silent["node-000"] = false
	f.passes(100, Completed)
	if len(f.last.Progress.Outcomes) != 2 || f.last.Counts.Done != 2 {
		t.Errorf("after it came back: outcomes %v, counts %+v", f.last.Progress.Outcomes, f.last.Counts)
	}
}

func TestSilentBeforeCommitIsTakenBack(t *testing.T) {
	f := newFleet(t, 2)
	f.silent["node-000"] = true
	f.passes(100)
	if got := f.last.Progress.Outcomes; len(got) != 1 || got[0].Node != "node-001" {
		t.Errorf("outcomes %v, want node-001 alone: what was not begun is no failure", got)
	}
	if e := f.last.Progress.Nodes["uid-node-000"]; e.Failed || e.Deferrals == 0 {
		t.Errorf("remembered %+v", e)
	}
}

func TestRefusalIsNoFailure(t *testing.T) {
	f := newFleet(t, 2)
	f.refusing["node-000"] = true
	f.passes(60)
	if got := f.last.Progress.Outcomes; len(got) != 1 || got[0].Result != Succeeded {
		t.Errorf("outcomes %v", got)
	}
	f.refusing["node-000"] = false
	f.passes(400, Completed)
}

// A blocked drain names its culprit before its deadline; then the policy decides (R-RO-12).
func TestStuckDrain(t *testing.T) {
	for _, policy := range []StuckDrain{"", "Hold", UndoDrain, ForceDrain} {
		f := newFleet(t, 2)
		f.p.StuckDrain, f.p.DrainWithin = policy, time.Minute
		f.stuck["node-000"] = true
		d := f.passes(5)
		f.wantReason(d, "node-000", ReasonBlocked)
		if why := f.of(d, "node-000").Why.Message; !strings.Contains(why, "shop/web") {
			t.Errorf("%s: %q does not name the pod", policy, why)
		}
		f.passes(20)
		slot, done := f.s.Ledger.Slot("uid-node-000"), f.node("node-000").Runs.Name == "v2"
		switch policy {
		case UndoDrain:
			if e := f.last.Progress.Nodes["uid-node-000"]; e.Deferrals == 0 || e.Failed || done {
				t.Errorf("Undo: %+v, done %t", e, done)
			}
		case ForceDrain:
			if !done {
				t.Errorf("Force: the node is %s", f.of(f.last, "node-000").State)
			}
		default:
			if slot == nil || slot.State != "" || done || !f.cordoned["node-000"] {
				t.Errorf("%q: slot %+v, done %t, cordoned %t", policy, slot, done, f.cordoned["node-000"])
			}
		}
	}
}

// Work that does not come back freezes the rollout until somebody decides (R-RO-10).
func TestWorkThatDoesNotComeBackFreezes(t *testing.T) {
	f := newFleet(t, 3)
	f.p.VerifyWithin = time.Minute
	f.passes(5)
	f.node("node-000").Health = Verdict{Answer: Deny, Message: "1 of 4 pods ready", RetryAfter: 7 * time.Second}
	if d := f.passes(2); d.After == 0 || d.After > 7*time.Second {
		t.Errorf("the next look at the work is after %s, want 7s at most, as its health says", d.After)
	}
	d := f.passes(30, Frozen)
	if s := d.Ledger.Slot("uid-node-000"); s == nil || s.State != protocol.SlotBroken || !strings.Contains(d.Message, "1 of 4 pods ready") {
		t.Fatalf("slot %+v, message %q", s, d.Message)
	}
	if f.passes(20); len(f.begun) != 1 {
		t.Fatalf("begun %v after the freeze", f.begun)
	}
	f.node("node-000").Health = Verdict{Answer: Allow}
	f.p.Verb = Verb{Request: "a", Do: Accept}
	f.passes(100, Completed)
}

// What was broken in that way gets the revision that follows first, too.
func TestSupersedingRevisionGoesToNodesWhoseWorkIsGone(t *testing.T) {
	f := newFleet(t, 3)
	f.p.VerifyWithin = time.Minute
	f.passes(5)
	f.node("node-000").Health = Verdict{Answer: Deny, Message: "1 of 4 pods ready"}
	f.passes(30, Frozen)
	f.p.Target = revision("v3")
	f.passes(3)
	f.wantReason(f.last, "node-001", "BrokenNodesFirst")
	f.node("node-000").Health = Verdict{Answer: Allow}
	f.passes(100, Completed)
	if f.runs("v3") != 3 || !slices.Equal(f.begun, []string{"node-000", "node-001", "node-002"}) {
		t.Errorf("%d nodes run v3, begun %v", f.runs("v3"), f.begun)
	}
}

// A critical node that fails stops everything before the next admission (R-RO-18).
func TestCriticalNodeMayNotFail(t *testing.T) {
	f := newFleet(t, 6)
	f.p.Caps = []Cap{{Scope: Total, Max: number(2)}}
	f.p.Critical = labels.SelectorFromSet(labels.Set{"critical": "yes"})
	f.node("node-002").Labels = map[string]string{"critical": "yes"}
	f.fails = func(node, _ string) protocol.Event {
		if node == "node-002" {
			return protocol.EventFellBack
		}
		return ""
	}
	d := f.passes(50, Frozen)
	n := len(f.begun)
	if f.passes(50); len(f.begun) != n || !strings.Contains(d.Message, "node-002") {
		t.Errorf("begun %v, message %q", f.begun, d.Message)
	}
}

type twoFailures struct{}

func (twoFailures) Name() string { return "two" }

func (twoFailures) Trips(outcomes []Outcome, nodes int) (string, bool) {
	n := 0
	for _, o := range outcomes {
		if o.Result != Succeeded {
			n++
		}
	}
	return "two have failed", n >= 2 && nodes > 0
}

// A detector that trips closes the ledger in the same pass, before any admission (R-RO-28).
func TestDetectorClosesTheLedgerBeforeTheNextAdmission(t *testing.T) {
	f := newFleet(t, 20)
	f.p.Caps = []Cap{{Scope: Total, Max: number(5)}}
	f.p.Detectors = []Detector{twoFailures{}}
	f.fails = func(node, _ string) protocol.Event {
		if node == "node-003" || node == "node-004" {
			return protocol.EventFellBack
		}
		return ""
	}
	d := f.passes(50, Frozen)
	if doing := doing(d, protocol.EventAdmit); len(doing) != 0 || d.Ledger.ClosedFor(f.p.UID) == nil || !strings.Contains(d.Progress.Frozen, "two have failed") {
		t.Fatalf("admitted %v, closures %v, frozen %q", doing, d.Ledger.Closures, d.Progress.Frozen)
	}
	f.p.Verb = Verb{Request: "go-on", Do: Accept}
	f.passes(300)
	if f.runs("v2") != 18 {
		t.Errorf("%d nodes run v2, want 18: %s", f.runs("v2"), f.last.Message)
	}
}

// The ledger of a freeze may be stored and its progress not. The freeze is found again, after more outcomes and maybe by another detector, and keeps the
// closure that it has, so that accepting it opens the ledger (R-RO-10, R-RO-28). One that was lifted, and what people have closed, is not taken for it.
func TestFreezeThatIsFoundAgainKeepsItsClosure(t *testing.T) {
	for _, again := range []Detector{twoFailures{}, Failures{At: number(2)}} {
		f := newFleet(t, 20)
		f.p.Caps = []Cap{{Scope: Total, Max: number(5)}}
		f.p.Detectors = []Detector{twoFailures{}}
		f.fails = func(node, _ string) protocol.Event {
			if node == "node-003" || node == "node-004" {
				return protocol.EventFellBack
			}
			return ""
		}
		lifted, byHand, other := "two failures/v2/1", "by hand/v2/x", "two failures/v1/2"
		f.s.Progress.Lifted = []string{lifted}
		var before Progress
		for i := 0; i < 50 && f.last.Phase != Frozen; i++ {
			before = f.s.Progress
			f.pass()
		}
		first := f.last.Progress.FrozenBy
		for _, request := range []string{lifted, byHand, other} {
			f.s.Ledger = f.s.Ledger.Open(f.p.UID, first).Close(protocol.Closure{Scope: f.p.UID, Request: request}).Close(protocol.Closure{Scope: f.p.UID, Request: first})
		}
		f.s.Progress, f.p.Detectors = before, []Detector{again}
		d := f.pass()
		if is := d.Progress.FrozenBy; d.Phase != Frozen || is != first || len(d.Progress.Outcomes) <= 2 || len(d.Ledger.Closures) != 3 {
			t.Fatalf("%s: found again after %d outcomes: closed by %q in %v, want %q", again.Name(), len(d.Progress.Outcomes), is, d.Ledger.Closures, first)
		}
		f.s.Ledger = f.s.Ledger.Open(f.p.UID, byHand).Open(f.p.UID, other)
		f.p.Verb = Verb{Request: "go-on", Do: Accept}
		f.passes(300)
		if f.runs("v2") != 18 || len(f.s.Ledger.Closures) != 0 {
			t.Errorf("%s: %d nodes run v2, want 18, and %v is closed: %s", again.Name(), f.runs("v2"), f.s.Ledger.Closures, f.last.Message)
		}
	}
}

// A chain of fatal revisions breaks one node: each goes to that one first, and healthy ones are untouched until it has recovered.
func TestSupersedingRevisionGoesToBrokenNodesFirst(t *testing.T) {
	f := newFleet(t, 6)
	f.p.Completed, f.p.Attempts = Revision{}, 1
	f.fails = func(_, revision string) protocol.Event {
		if revision != "v4" {
			return protocol.EventBroke
		}
		return ""
	}
	f.passes(100, Frozen)
	f.p.Target = revision("v3")
	f.passes(100, Frozen)
	if !slices.Equal(f.begun, []string{"node-000"}) {
		t.Fatalf("begun %v", f.begun)
	}
	f.p.Target = revision("v4")
	d := f.pass()
	f.wantReason(d, "node-001", "BrokenNodesFirst")
	if got := doing(d, protocol.EventRetry); !slices.Equal(got, []string{"node-000"}) {
		t.Fatalf("tried again: %v", got)
	}
	f.passes(100, Completed)
	if f.runs("v4") != 6 {
		t.Errorf("%d nodes run v4", f.runs("v4"))
	}
}
