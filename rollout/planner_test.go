// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

// A planner decides the same however the cache lists the nodes: in another order, with one more, one less, one that has another's name for a while.
func TestPlannerSortsByName(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	f := newFleet(t, 30)
	var planner Planner
	for round := range 60 {
		nodes, was := f.s.Nodes, []Node(nil)
		switch rng.IntN(4) {
		case 0:
			f.add(fmt.Sprintf("new-%02d", round), nil)
		case 1:
			f.s.Nodes = nodes[1:]
		case 2: // the Node was made anew, and the old one is listed for a while; be it that another one has gone
			twin := nodes[0]
			twin.UID += "-again"
			f.s.Nodes = append(slices.Clone(nodes[:len(nodes)-rng.IntN(2)]), twin)
			was = nodes
		}
		for range 4 {
			rng.Shuffle(len(f.s.Nodes), func(i, j int) { f.s.Nodes[i], f.s.Nodes[j] = f.s.Nodes[j], f.s.Nodes[i] })
			want, err := Plan(f.s, f.p, f.now)
			if err != nil {
				t.Fatal(err)
			}
			got, err := planner.Plan(f.s, f.p, f.now)
			if a, b := encode(t, want), encode(t, got); err != nil || a != b {
				t.Fatalf("round %d: decided\n%s\nwant\n%s\n%v", round, b, a, err)
			}
		}
		if was != nil {
			f.s.Nodes = was
		}
	}
}
