// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// The whole rollout over 5,000 nodes in 20 groups: one by one, as many moments as there are nodes; from the middle of one in which the nodes in flight
// end at different times; and in steps of 5 of 100.
func BenchmarkSimulate(b *testing.B) {
	for _, c := range []struct {
		name  string
		limit int
		fresh bool
	}{{"one by one", 1, true}, {"under way", 250, false}, {"in steps", 250, true}} {
		b.Run(c.name, func(b *testing.B) {
			f := benchFleet(&testing.T{}, 5000, 20, 250)
			f.p.Caps = []Cap{{Scope: Total, Max: number(c.limit)}}
			f.stagger(c.fresh)
			b.ReportAllocs()
			for b.Loop() {
				s, err := Simulate(f.s, f.p, f.now, Assumptions{})
				if err != nil || s.Expected.Ending != EndCompleted {
					b.Fatalf("%v: %s: %s", err, s.Expected.Ending, s.Expected.Message)
				}
				b.ReportMetric(float64(s.Expected.Steps), "plans/op")
			}
		})
	}
}

// stagger has the nodes in flight end one by one, or lets all begin anew.
func (f *fleet) stagger(fresh bool) {
	if fresh {
		f.s.Ledger, f.s.Progress = protocol.Ledger{}, Progress{}
	}
	for i := range f.s.Nodes {
		n := &f.s.Nodes[i]
		n.Away = ""
		if fresh {
			n.Runs, n.Shadow.Orders, n.Shadow.Report = protocol.Revision{Name: "v1"}, protocol.Orders{}, protocol.Report{Known: true}
		}
		if e, flying := f.s.Progress.Nodes[n.UID]; flying {
			e.Admitted = f.now.Add(-time.Duration(i) * 111 * time.Millisecond)
			f.s.Progress.Nodes[n.UID] = e
		}
	}
}
