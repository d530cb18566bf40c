// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

func (f *fleet) wantNodesFinding(d Decisions, says string) {
	f.t.Helper()
	for _, finding := range d.Findings {
		if finding.Check == "Nodes" && finding.Mode == Warn && strings.Contains(finding.Message, says) {
			if !strings.Contains(d.Message, finding.Message) {
				f.t.Errorf("message %q, want the finding in it", d.Message)
			}
			return
		}
	}
	f.t.Errorf("findings %+v, want a warning of Nodes with %q", d.Findings, says)
}

// A rollback of a rollout that has cost nodes takes place, though their names are in the policy; that they are missing is said (R-RO-21).
func TestRollbackIsNotHeldUpByNodesThatAreGone(t *testing.T) {
	f := newFleet(t, 4)
	f.p.Groups = []Group{{Name: "all", Nodes: []string{"node-000", "node-001", "node-002", "node-003"}}}
	f.passes(12)
	if f.runs("v2") == 0 {
		t.Fatal("no node runs v2")
	}
	f.remove("node-001")
	f.wantNodesFinding(f.pass(), `groups[0].nodes[1] is "node-001"`)
	f.p.Target, f.p.Completed = revision("v1"), Revision{}
	f.p.Verb = Verb{Request: "back", Do: Pause}
	if d := f.pass(); d.Progress.Handled != "back" {
		t.Errorf("handled %q, want what was asked for with the rollback", d.Progress.Handled)
	}
	f.p.Verb = Verb{Request: "on", Do: Resume}
	d := f.passes(100, Completed)
	if f.runs("v1") != 3 {
		t.Errorf("%d of 3 nodes run v1", f.runs("v1"))
	}
	f.wantNodesFinding(d, `groups[0].nodes[1] is "node-001"`)
}

// A stage whose groups have no node any more is passed, by a successor as well.
func TestSuccessorPassesStagesThatHaveLostTheirNodes(t *testing.T) {
	f := newFleet(t, 2)
	f.add("canary", map[string]string{"pool": "canary"})
	f.p.Groups = []Group{{Name: "canary", Selector: labels.SelectorFromSet(labels.Set{"pool": "canary"})}, {Name: "rest", Selector: labels.Everything()}}
	f.p.Stages = []Stage{{Name: "first", Groups: []string{"canary"}}, {Name: "second", Groups: []string{"rest"}}}
	f.passes(100, Completed)
	f.remove("canary")
	f.p.Target = revision("v3")
	f.wantNodesFinding(f.pass(), `stages[0] is "first"`)
	f.passes(100, Completed)
	if f.runs("v3") != 2 {
		t.Errorf("%d nodes run v3, want 2", f.runs("v3"))
	}
}

// A rollout does not begin while the policy names what is not there.
func TestRolloutDoesNotBeginWithoutItsNodes(t *testing.T) {
	f := newFleet(t, 1)
	f.p.Groups = []Group{{Name: "all", Nodes: []string{"node-000", "node-001"}}}
	var invalid *FieldError
	if _, err := Plan(f.s, f.p, f.now); !errors.As(err, &invalid) || invalid.Field != "groups[0].nodes[1]" {
		t.Errorf("error %v, want one of groups[0].nodes[1]", err)
	}
	f.add("node-001", nil)
	if d := f.plan(); len(d.Findings) != 0 || len(doing(d, protocol.EventAdmit)) != 1 {
		t.Errorf("findings %+v, begun %v", d.Findings, doing(d, protocol.EventAdmit))
	}
}
