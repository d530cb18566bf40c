// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// fallBack has a node run what it ran before, though it has reported success, as one does that gives a revision up later or is made anew.
func (f *fleet) fallBack(name string) {
	f.node(name).Runs = protocol.Revision{Name: "v1", Digest: "sha256:v1"}
}

func (f *fleet) outcomes(uid string) (all []Result) {
	for _, o := range f.s.Progress.Outcomes {
		if o.UID == uid {
			all = append(all, o.Result)
		}
	}
	return all
}

// A node that falls back after its success has failed: that is its outcome from then on, and it is updated again as often as any other one that fails, and not
// for ever (R-RO-28).
func TestNodeThatFallsBackLaterHasFailed(t *testing.T) {
	f := newFleet(t, 3)
	f.p.RetryAfter = time.Second
	f.passes(100, Completed)
	begun := len(f.begun)
	for range 400 {
		if n := f.node("node-001"); n.Runs.Name == "v2" && f.s.Ledger.Slot(n.UID) == nil {
			f.fallBack("node-001")
		}
		f.pass()
	}
	if got := len(f.begun) - begun; got != 2 {
		t.Errorf("the node was updated again %d times, want 2: three failures are enough", got)
	}
	if all := f.outcomes("uid-node-001"); len(all) != 1 || all[0] != FellBack {
		t.Errorf("outcomes %v, want one, a failure", all)
	}
	if n := f.last.Counts; n.Failed != 1 || n.Done != 2 {
		t.Errorf("counts %+v, want 1 failed", n)
	}
	f.wantReason(f.last, "node-001", ReasonGivenUp)
}

// So has one that was made anew, without its record, and fails then.
func TestNodeThatIsMadeAnewAndFailsHasFailed(t *testing.T) {
	f := newFleet(t, 2)
	f.p.RetryAfter = time.Second
	before := *f.node("node-000")
	f.passes(100, Completed)
	f.passes(5)
	*f.node("node-000") = before
	f.fails = always(protocol.EventFellBack)
	f.passes(100)
	if all := f.outcomes("uid-node-000"); len(all) != 1 || all[0] != FailedClean {
		t.Errorf("outcomes %v, want one, a failure", all)
	}
}

// What a node did long ago has no say in how often it may fail.
func TestRelapseAfterLongTimeIsTheFirst(t *testing.T) {
	f := newFleet(t, 2)
	f.p.RetryAfter = time.Second
	f.passes(100, Completed)
	for range 5 {
		f.fallBack("node-001")
		f.passes(40)
		if f.runs("v2") != 2 {
			t.Fatalf("%d nodes run v2: %s", f.runs("v2"), f.of(f.last, "node-001").Why.Message)
		}
		f.now = f.now.Add(24 * time.Hour)
	}
}

// Nodes that fall back together after the rollout was completed trip the detectors before more than one is updated again (R-RO-28).
func TestFleetThatFallsBackLaterFreezes(t *testing.T) {
	f := newFleet(t, 12)
	f.p.Detectors, f.p.Caps = nil, []Cap{{Scope: Total, Max: number(4)}}
	f.passes(100, Completed)
	begun := len(f.begun)
	for i := range f.s.Nodes {
		f.fallBack(f.s.Nodes[i].Name)
	}
	d := f.pass()
	if d.Phase != Frozen || d.Ledger.ClosedFor(f.p.UID) == nil || len(d.Progress.Outcomes) != 12 {
		t.Errorf("phase %s, closures %v, %d outcomes: %s", d.Phase, d.Ledger.Closures, len(d.Progress.Outcomes), d.Message)
	}
	if f.passes(50); len(f.begun) != begun {
		t.Errorf("begun %v after the freeze", f.begun[begun:])
	}
}

// A critical node stops the rollout at each of its failures: the later ones, and one after its success, too (R-RO-18).
func TestCriticalNodeMayNotFailLater(t *testing.T) {
	f := newFleet(t, 4)
	f.p.RetryAfter = time.Second
	f.p.Critical = labels.SelectorFromSet(labels.Set{"critical": "yes"})
	f.node("node-000").Labels = map[string]string{"critical": "yes"}
	for i := 0; i < 20 && len(f.s.Progress.Outcomes) == 0; i++ {
		f.pass()
	}
	if f.runs("v2") == 0 || f.last.Phase == Completed {
		t.Fatalf("%d nodes run v2, the rollout is %s", f.runs("v2"), f.last.Phase)
	}
	closures := map[string]bool{}
	for i, when := range []string{"after its success", "again", "once more"} {
		if i == 0 {
			f.fallBack("node-000")
		}
		d := f.passes(100, Frozen)
		if !strings.Contains(d.Message, "node-000") || closures[d.Progress.FrozenBy] {
			t.Fatalf("%s: frozen by %q: %s", when, d.Progress.FrozenBy, d.Message)
		}
		closures[d.Progress.FrozenBy] = true
		begun := len(f.begun)
		if f.passes(5); len(f.begun) != begun {
			t.Fatalf("%s: begun %v after the freeze", when, f.begun[begun:])
		}
		f.fails = func(node, _ string) protocol.Event {
			if node == "node-000" {
				return protocol.EventFellBack
			}
			return ""
		}
		f.p.Verb = Verb{Request: when, Do: Accept}
		f.pass()
	}
}

// A node that comes into a group with a revision of its own has not fallen back when it runs that of the other one.
func TestNodeThatChangesGroupsHasNotFallenBack(t *testing.T) {
	f := newFleet(t, 3)
	own := revision("v9")
	f.p.Groups = []Group{{Name: "own", Selector: labels.SelectorFromSet(labels.Set{"own": "yes"}), Target: &own}, {Name: "all", Selector: labels.Everything()}}
	f.passes(100, Completed)
	f.node("node-001").Labels = map[string]string{"own": "yes"}
	if f.pass(); f.s.Progress.Nodes["uid-node-001"].Attempts != 0 {
		t.Errorf("remembered %+v of a node that has not failed", f.s.Progress.Nodes["uid-node-001"])
	}
	f.passes(20)
	if e, known := f.s.Progress.Nodes["uid-node-001"]; known || f.node("node-001").Runs.Name != "v9" || f.outcomes("uid-node-001")[0] != Succeeded {
		t.Errorf("remembered %+v of a node that runs %s, outcomes %v", e, f.node("node-001").Runs, f.outcomes("uid-node-001"))
	}
}

// An old record of a node proves no relapse: neither one of before its attempt, nor one of a relapse that has counted.
func TestOldRecordIsNoRelapse(t *testing.T) {
	f := newFleet(t, 2)
	f.p.RetryAfter = time.Second
	before := *f.node("node-000")
	f.passes(100, Completed)
	f.passes(5)
	now := *f.node("node-000")
	*f.node("node-000") = before
	if d, err := Plan(f.s, f.p, f.now); err != nil || d.Progress.Nodes["uid-node-000"].Attempts != 0 {
		t.Errorf("remembered %+v of a node that was seen as it was before: %v", d.Progress.Nodes["uid-node-000"], err)
	}
	*f.node("node-000") = now
	f.fallBack("node-000")
	relapse := *f.node("node-000")
	f.passes(40)
	now = *f.node("node-000")
	*f.node("node-000") = relapse
	d, err := Plan(f.s, f.p, f.now)
	if e := d.Progress.Nodes["uid-node-000"]; err != nil || f.runs("v2") != 1 || now.Runs.Name != "v2" || e.Attempts != 1 {
		t.Errorf("remembered %+v of a node whose relapse was seen again", e)
	}
}
