// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
)

// A remembered is a planner that was asked before, and what it has said then.
type remembered struct {
	planner Planner
	said    Decisions
	text    string
}

// wantSame checks that a planner which was asked about other things before decides what a new one does, and that what it has said before stays as it is.
func (r *remembered) wantSame(f *fleet, want Decisions) {
	f.t.Helper()
	d, err := r.planner.Plan(f.s, f.p, f.now)
	if a, b := encode(f.t, want), encode(f.t, d); err != nil || a != b {
		f.t.Fatalf("Plan has decided\n%s\nand a planner that was asked before\n%s\n%v", a, b, err)
	}
	if now := encode(f.t, r.said); r.text != "" && now != r.text {
		f.t.Fatalf("what a planner has decided before was changed from\n%s\nto\n%s", r.text, now)
	}
	r.said, r.text = d, encode(f.t, d)
}

// A planner knows nothing of other fleets, larger and smaller ones, that it was asked about, nor of errors.
func TestPlannerRemembersNothing(t *testing.T) {
	var planner Planner
	for _, n := range []int{40, 3, 0, 200, 7} {
		f := newFleet(t, n)
		f.p.Groups[0].Name = map[bool]string{true: "many", false: "few"}[n > 10]
		for range 6 {
			want := f.plan()
			f.s.Ledger, f.s.Progress = want.Ledger, want.Progress
			want, err := Plan(f.s, f.p, f.now)
			if err != nil {
				t.Fatal(err)
			}
			wrong := f.p
			wrong.Attempts = -1
			if _, err := planner.Plan(f.s, wrong, f.now); err == nil {
				t.Fatal("a planner has taken a wrong policy")
			}
			got, err := planner.Plan(f.s, f.p, f.now)
			if a, b := encode(t, want), encode(t, got); err != nil || a != b {
				t.Fatalf("%d nodes: decided\n%s\nwant\n%s\n%v", n, b, a, err)
			}
			f.pass()
		}
	}
}
