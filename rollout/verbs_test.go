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

// Every pair of a verb and a phase is in the table, or is refused with a reason, and the request is handled either way.
func TestVerbsByTheTable(t *testing.T) {
	for _, phase := range Phases() {
		for _, do := range []Do{Pause, Resume, Abort, Accept, Promote, Acknowledge} {
			f := inPhase(t, phase)
			f.p.Verb = Verb{Request: "r-" + string(do), Do: do}
			if do == Acknowledge {
				f.p.Verb.Node = "node-000"
			}
			d := f.plan()
			listed := slices.ContainsFunc(Verbs(), func(r VerbRule) bool { return r.Do == do && r.In == phase })
			refused := d.Progress.Refused != "" && do != Acknowledge // nothing of these fleets is broken
			if d.Progress.Handled != f.p.Verb.Request || refused == listed {
				t.Errorf("%s while %s: handled %q, refused %q, listed %t", do, phase, d.Progress.Handled, d.Progress.Refused, listed)
			}
			if refused && d.Phase != phase && phase != Pending {
				t.Errorf("%s while %s is refused, and the rollout is %s", do, phase, d.Phase)
			}
		}
	}
}

// inPhase is a fleet whose rollout is in a phase.
func inPhase(t *testing.T, phase Phase) *fleet {
	t.Helper()
	f := newFleet(t, 3)
	f.p.Stages = []Stage{{Name: "canary", Size: size(1), Approval: phase == AtGate}, {Name: "rest"}}
	switch phase {
	case Pending:
		return f
	case Frozen:
		f.fails = always(protocol.EventFellBack)
	case Paused:
		f.pass()
		f.p.Verb = Verb{Request: "pause", Do: Pause}
	case Aborting:
		f.passes(4) // applying: that ends first
		f.p.Verb = Verb{Request: "abort", Do: Abort}
	case Aborted:
		f.pass()
		f.p.Verb = Verb{Request: "abort", Do: Abort}
	}
	f.passes(300, phase)
	return f
}

// After an abort was acknowledged no node leaves the undisrupted states, and what was begun ends (R-RO-19). It can be resumed to the same
// end (R-RO-20).
func TestAbortAtEveryMomentAndResume(t *testing.T) {
	for moment := range 40 {
		f := newFleet(t, 6)
		f.p.Caps = []Cap{{Scope: Total, Max: number(2)}}
		f.p.RetryAfter = time.Second
		f.passes(moment)
		if f.last.Phase == Completed {
			return
		}
		f.abortsAndResumes(moment, "v2")
	}
	t.Error("the rollout was never completed")
}

// A rollback can be aborted at every moment as well, and resumed to the same end: it has stages and an order of its own, and begins while nodes are under way,
// broken, or at the end of the revision that is taken back (R-RO-19, R-RO-20).
func TestAbortOfARollbackAtEveryMomentAndResume(t *testing.T) {
	for _, way := range []int{3, 9, 100} {
		for moment := 0; ; moment++ {
			f := newFleet(t, 6)
			f.p.Caps, f.p.RetryAfter = []Cap{{Scope: Total, Max: number(2)}}, time.Second
			f.fails = func(node, revision string) protocol.Event {
				if node == "node-001" && revision == "v2" {
					return protocol.EventBroke
				}
				return ""
			}
			f.passes(way)
			if f.runs("v1") == 6 && way > 5 {
				t.Fatalf("no node runs v2 after %d passes: there is nothing to take back", way)
			}
			f.p.Target, f.p.Completed, f.p.Order = revision("v1"), Revision{}, RollbackOrder
			f.p.Stages = []Stage{{Name: "back", Size: size(2)}, {Name: "the rest"}}
			f.passes(moment)
			if f.last.Phase == Completed && f.last.Progress.Targets[0].Name == "v1" {
				break
			}
			if moment > 60 {
				t.Fatalf("the rollback is %s after %d passes: %s", f.last.Phase, moment, f.last.Message)
			}
			f.abortsAndResumes(moment, "v1")
		}
	}
}

// abortsAndResumes aborts a rollout of six nodes, has it come to its end, and resumes it to its other end.
func (f *fleet) abortsAndResumes(moment int, revision string) {
	f.t.Helper()
	f.p.Verb = Verb{Request: "abort", Do: Abort}
	begun := len(f.begun)
	f.endsWithoutMore(moment)
	broken := slices.ContainsFunc(f.s.Ledger.Slots, func(s protocol.Slot) bool { return s.State == "" })
	if f.last.Phase != Aborted || broken || len(f.begun) != begun || !f.last.Acknowledged {
		f.t.Fatalf("moment %d: phase %s, slots %v, begun %v", moment, f.last.Phase, f.s.Ledger.Slots, f.begun)
	}
	for node, cordoned := range f.cordoned {
		if cordoned && f.s.Ledger.Slot("uid-"+node) == nil {
			f.t.Fatalf("moment %d: node %q is left cordoned", moment, node)
		}
	}
	f.p.Verb = Verb{Request: "resume", Do: Resume}
	f.passes(200, Completed)
	if f.runs(revision) != 6 || len(f.s.Ledger.Slots) != 0 {
		f.t.Fatalf("moment %d: %d nodes run %s, slots %v", moment, f.runs(revision), revision, f.s.Ledger.Slots)
	}
}

// endsWithoutMore lets an aborted rollout come to its end.
func (f *fleet) endsWithoutMore(moment int) {
	f.t.Helper()
	for range 20 {
		d := f.pass()
		for _, n := range d.Nodes {
			slot := f.s.Ledger.Slot(n.UID)
			proceeds := n.Do == protocol.EventProceed && (slot == nil || slot.State == "") // one that is broken is not better off without
			if proceeds || n.Do == protocol.EventGrant || n.Do == protocol.EventRetry || n.Do == protocol.EventAdmit {
				f.t.Fatalf("moment %d: node %q is %s, %q after the abort", moment, n.Node, n.State, n.Do)
			}
			if d.Acknowledged && (n.State == protocol.Admitted || n.State == protocol.Granted) {
				f.t.Fatalf("moment %d: node %q is %s after the abort was acknowledged", moment, n.Node, n.State)
			}
		}
	}
}

// A pause lets committed nodes finish, and takes back what is not committed; when that is acknowledged, no node commits (R-RO-32).
func TestPauseAndResume(t *testing.T) {
	f := newFleet(t, 5)
	f.p.Caps = []Cap{{Scope: Total, Max: number(3)}}
	f.pass()
	f.silent["node-001"] = true // before it has heard of its grant
	f.pass()
	f.silent["node-002"] = true // after it has committed
	if d := f.plan(); f.of(d, "node-000").State != protocol.Committed || f.of(d, "node-001").State != protocol.Granted || f.of(d, "node-002").State != protocol.Committed {
		t.Fatalf("%s, %s and %s, want two committed and one granted", f.of(d, "node-000").State, f.of(d, "node-001").State, f.of(d, "node-002").State)
	}
	f.p.Verb = Verb{Request: "p", Do: Pause}
	acknowledged := 0
	for i := range 20 {
		d := f.pass()
		if !d.Acknowledged {
			continue
		}
		acknowledged++
		f.wantNoneBegun(i, d)
		f.silent["node-001"] = false // it finds its grant revoked
	}
	if acknowledged == 0 || !f.last.Acknowledged || f.last.Phase != Paused {
		t.Fatalf("phase %s, acknowledged in %d passes of 20, the last of them: %t", f.last.Phase, acknowledged, f.last.Acknowledged)
	}
	f.wantPaused(map[string]protocol.State{
		"node-000": protocol.Resting, "node-001": protocol.Resting, "node-002": protocol.Proceeding, "node-003": protocol.Resting, "node-004": protocol.Resting,
	}, "node-000", "node-002")
	f.wantReason(f.last, "node-003", ReasonPaused)
	f.silent["node-002"] = false
	if f.passes(10); f.last.Phase != Paused || len(f.s.Ledger.Slots) != 0 || f.runs("v2") != 2 {
		t.Fatalf("phase %s, slots %v, %d nodes run v2, want the committed ones to finish", f.last.Phase, f.s.Ledger.Slots, f.runs("v2"))
	}
	f.p.Verb = Verb{Request: "q", Do: Resume}
	f.passes(100, Completed)
	if f.runs("v2") != 5 || f.node("node-000").Shadow.Report.Attempt != 1 {
		t.Errorf("%d nodes run v2, node-000 in attempt %d", f.runs("v2"), f.node("node-000").Shadow.Report.Attempt)
	}
}

// wantNoneBegun checks that no node can commit after a pause was acknowledged.
func (f *fleet) wantNoneBegun(pass int, d Decisions) {
	f.t.Helper()
	for _, n := range d.Nodes {
		if n.State == protocol.Admitted || n.State == protocol.Granted || n.Do == protocol.EventAdmit || n.Do == protocol.EventGrant {
			f.t.Fatalf("pass %d: node %q is %s, %q after the pause was acknowledged", pass, n.Node, n.State, n.Do)
		}
	}
}

// wantPaused checks the state and the slot of each node; the first of those that have committed runs the revision, the second one is silent in its slot.
func (f *fleet) wantPaused(states map[string]protocol.State, done, silent string) {
	f.t.Helper()
	for name, want := range states {
		n := f.of(f.last, name)
		slot := f.s.Ledger.Slot(n.UID)
		if n.State != want || (slot != nil) != (name == silent) || (f.node(name).Runs.Name == "v2") != (name == done) || f.cordoned[name] != (name == silent) {
			f.t.Errorf("node %q is %s, runs %s, cordoned %t, slot %+v; want it %s", name, n.State, f.node(name).Runs, f.cordoned[name], slot, want)
		}
	}
}

// A controller that has slept through an abort cannot open the ledger again; one that has slept through the resumption closes nothing before it has
// stored its progress, which it can't; and what it may have closed before is opened, as it was lifted.
func TestStaleControllerAndTheFence(t *testing.T) {
	f := newFleet(t, 3)
	f.pass()
	stale := f.s.Progress
	f.p.Verb = Verb{Request: "abort-1", Do: Abort}
	f.passes(10, Aborted)
	s, p := f.s, f.p
	s.Progress, p.Verb = stale, Verb{}
	d, err := Plan(s, p, f.now)
	if err != nil || d.Ledger.ClosedFor(p.UID) == nil || len(doing(d, protocol.EventAdmit)) != 0 {
		t.Fatalf("a stale controller opens the ledger: %v, %v", d.Ledger.Closures, err)
	}
	p.Verb = f.p.Verb
	f.p.Verb = Verb{Request: "resume-1", Do: Resume}
	f.pass()
	s.Ledger = f.s.Ledger
	if d, err = Plan(s, p, f.now); err != nil || d.Ledger.ClosedFor(p.UID) != nil || d.Progress.Stopped != "abort-1" || len(doing(d, protocol.EventAdmit)) != 0 {
		t.Fatalf("the stale controller aborts: %v, %v, and remembers %q", d.Ledger.Closures, err, d.Progress.Stopped)
	}
	f.s.Ledger = f.s.Ledger.Close(protocol.Closure{Scope: p.UID, Request: "abort-1", Reason: "the rollout is Aborting"})
	f.passes(100, Completed)
}

func TestAcknowledgeFreesABrokenNodesSlot(t *testing.T) {
	f := newFleet(t, 3)
	f.p.ApplyWithin, f.p.VerifyWithin = time.Minute, time.Minute
	f.passes(4)
	f.p.Verb = Verb{Request: "early", Do: Acknowledge, Node: "node-000"}
	if d := f.pass(); !strings.Contains(d.Progress.Refused, "neither suspect nor broken") {
		t.Errorf("refused %q", d.Progress.Refused)
	}
	f.silent["node-000"] = true
	f.passes(30)
	f.p.Verb = Verb{Request: "late", Do: Acknowledge, Node: "node-000"}
	d := f.pass()
	if d.Progress.Refused != "" || d.Ledger.Slot("uid-node-000") != nil {
		t.Fatalf("refused %q, slots %v", d.Progress.Refused, d.Ledger.Slots)
	}
	d = f.pass()
	f.wantReason(d, "node-000", ReasonLost)
	if d.Counts.Lost != 1 {
		t.Errorf("counts %+v, want 1 lost", d.Counts)
	}
}

func TestPromoteSkipsTheSoakAndLeavesSickNodesBehind(t *testing.T) {
	f := newFleet(t, 3)
	f.p.Groups = []Group{{Name: "first", Nodes: []string{"node-000", "node-001"}}, {Name: "second", Nodes: []string{"node-002"}}}
	f.p.Stages = []Stage{{Name: "one", Groups: []string{"first"}, Soak: time.Hour}, {Name: "two", Groups: []string{"second"}}}
	f.node("node-001").Health = Verdict{Answer: Deny, Message: "sick"}
	f.passes(30)
	if f.last.Progress.Stage != 0 || f.runs("v2") != 1 {
		t.Fatalf("stage %d, %d nodes run v2", f.last.Progress.Stage, f.runs("v2"))
	}
	f.wantReason(f.last, "node-002", "LaterStage")
	f.p.Verb = Verb{Request: "1", Do: Promote}
	f.passes(30)
	if f.last.Progress.Stage != 2 || f.runs("v2") != 2 {
		t.Fatalf("stage %d, %d nodes run v2", f.last.Progress.Stage, f.runs("v2"))
	}
	f.node("node-001").Health = Verdict{Answer: Allow}
	f.passes(30)
	if f.runs("v2") != 3 {
		t.Errorf("what was left behind was forgotten: %s", f.last.Message)
	}
}

// A node that is gone can be acknowledged as well: that is refused, and its slot goes with it.
func TestAcknowledgeOfAGoneNode(t *testing.T) {
	f := newFleet(t, 3)
	f.fails = always(protocol.EventBroke)
	for i := 0; i < 50 && len(f.last.Progress.Outcomes) == 0; i++ {
		f.pass()
	}
	s, p := f.s, f.p
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n Node) bool { return n.Name == "node-000" })
	p.Verb = Verb{Request: "gone", Do: Acknowledge, Node: "node-000"}
	d, err := Plan(s, p, f.now)
	if err != nil || !slices.Equal(doing(d, protocol.EventGone), []string{"node-000"}) {
		t.Errorf("got error %v, gone %v, want the slot of node-000 to go", err, doing(d, protocol.EventGone))
	}
}

// An acknowledgement whose ledger was stored, and whose progress was not, is done again: the node counts as lost.
func TestAcknowledgeIsDoneAgain(t *testing.T) {
	f := newFleet(t, 3)
	f.p.ApplyWithin, f.p.VerifyWithin = time.Minute, time.Minute
	f.passes(4)
	f.silent["node-000"] = true
	f.passes(30)
	before := f.s.Progress
	f.p.Verb = Verb{Request: "late", Do: Acknowledge, Node: "node-000"}
	f.pass()
	f.s.Progress = before
	if d := f.pass(); d.Progress.Refused != "" || d.Progress.Handled != "late" {
		t.Errorf("done again: refused %q, handled %q", d.Progress.Refused, d.Progress.Handled)
	}
	if d := f.pass(); d.Counts.Lost != 1 {
		t.Errorf("counts %+v, want 1 lost", d.Counts)
	}
}
