// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// A controller that dies at any pass after it has stored the ledger, the progress or both, and before it has given any order, costs a pass: the
// end is the same, each node has one attempt, and counts once (R-RO-01).
func TestCrashBetweenWrites(t *testing.T) {
	for _, c := range []struct {
		name             string
		ledger, progress bool
	}{{"ledger", true, false}, {"progress", false, true}, {"both", true, true}, {"neither", false, false}} {
		for pass := 0; pass < 32; pass += raceshare.Step(t) {
			f := newFleet(t, 5)
			f.p.Caps = []Cap{{Scope: Total, Max: number(2)}}
			f.p.Stages = []Stage{{Name: "canary", Size: size(1)}, {Name: "rest"}}
			f.passes(pass)
			d, err := Plan(f.s, f.p, f.now)
			if err != nil {
				t.Fatal(err)
			}
			if c.ledger {
				f.s.Ledger = d.Ledger
			}
			if c.progress {
				f.s.Progress = d.Progress
			}
			f.now = f.now.Add(time.Second)
			f.passes(300, Completed)
			f.wantOneAttemptEach(c.name, pass)
		}
	}
}

func (f *fleet) wantOneAttemptEach(stored string, pass int) {
	f.t.Helper()
	outcomes := map[string]int{}
	for _, o := range f.s.Progress.Outcomes {
		outcomes[o.Node]++
		if o.Result != Succeeded || outcomes[o.Node] > 1 {
			f.t.Errorf("%s stored in pass %d: node %q has ended as %s, %d times", stored, pass, o.Node, o.Result, outcomes[o.Node])
		}
	}
	if f.s.Ledger.Epoch != protocol.Attempt(len(f.s.Nodes)) || len(f.s.Ledger.Slots) != 0 || len(outcomes) != len(f.s.Nodes) {
		f.t.Errorf("%s stored in pass %d: %d attempts, %d outcomes, want %d; slots %v", stored, pass, f.s.Ledger.Epoch, len(outcomes), len(f.s.Nodes), f.s.Ledger.Slots)
	}
}
