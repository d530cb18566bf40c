// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// exchange has the oldest node but the first, which stays for ever, make way for a new one.
func (f *fleet) exchange(i int) {
	f.remove(f.s.Nodes[1].Name)
	f.add(fmt.Sprintf("new-%05d", i), nil)
}

// Nodes that come and go after a rollout was completed leave no more than the newest outcomes behind: what is remembered stays small (R-RO-13, R-RO-30).
func TestChurnLeavesNoOutcomesBehind(t *testing.T) {
	f := newFleet(t, 8)
	f.passes(100, Completed)
	most := 0
	for i := range 600 {
		f.exchange(i)
		f.passes(8)
		p := &f.s.Progress
		if most = max(most, len(p.Outcomes)); p.StageFrom > len(p.Outcomes) || p.Accepted > len(p.Outcomes) {
			t.Fatalf("stage from %d, accepted %d of %d outcomes", p.StageFrom, p.Accepted, len(p.Outcomes))
		}
	}
	if f.last.Phase != Completed || f.runs("v2") < 7 {
		t.Errorf("the rollout is %s, %d nodes run v2", f.last.Phase, f.runs("v2"))
	}
	if most > 8+100 || most < 100 || len(f.s.Progress.Nodes) > 8 {
		t.Errorf("%d outcomes at most, want some of those that are gone, and not all; %d nodes remembered", most, len(f.s.Progress.Nodes))
	}
	if p := f.s.Progress; p.StageFrom != 1 {
		t.Errorf("the last stage has ended after outcome %d, want 1: that of the node which has stayed is all that is left of then", p.StageFrom)
	}
	seen := map[string]bool{}
	for _, o := range f.s.Progress.Outcomes {
		seen[o.UID] = true
	}
	for i := range f.s.Nodes[:7] {
		if n := &f.s.Nodes[i]; n.Runs.Name == "v2" && !seen[n.UID] {
			t.Errorf("the outcome of node %q is forgotten though it is there", n.Name)
		}
	}
}

// Failures that were accepted stay so when outcomes before them are forgotten, and those that follow count: nodes that the revision breaks as they join trip a
// detector though each is exchanged for the next one (R-RO-28).
func TestChurnForgetsNoFailures(t *testing.T) {
	f := newFleet(t, 8)
	f.p.Detectors, f.p.RetryAfter, f.p.Attempts = []Detector{Failures{At: number(3)}}, time.Second, 1
	f.passes(100, Completed)
	bad := false
	f.fails = func(string, string) protocol.Event {
		if bad {
			return protocol.EventFellBack
		}
		return ""
	}
	churn := func(from, n int) {
		for i := range n {
			f.exchange(from + i)
			f.passes(8)
		}
	}
	trips := func(from int) {
		bad = true
		for i := range 3 {
			if f.last.Phase == Frozen {
				t.Fatalf("frozen after %d failures: %s", i, f.last.Message)
			}
			f.exchange(from + i)
			f.passes(8)
		}
		if f.last.Phase != Frozen {
			t.Fatalf("the rollout is %s after 3 failures: %s", f.last.Phase, f.last.Message)
		}
		bad = false
		f.p.Verb = Verb{Request: fmt.Sprint(from), Do: Accept}
		f.passes(8)
	}
	churn(0, 150)
	trips(1000)
	churn(2000, 60)
	trips(3000)
	churn(4000, 150)
	trips(5000)
}
