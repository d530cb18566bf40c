// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"maps"
	"testing"
	"time"

	"github.com/belayproject/belay/examples/internal/bench/audit"
)

// What an agent at rest asks is a call, unless it is a renewal of its Lease or a watch; other requests for a Lease are calls, and so is the question
// whether the guard is there.
func TestTallyTellsCallsFromRenewalsAndWatches(t *testing.T) {
	ours := func(verb, resource, sub string, code int) audit.Request {
		return audit.Request{Agent: agentName + "v1", Verb: verb, Resource: resource, Subresource: sub, Code: code}
	}
	got := newTally()
	for _, r := range []audit.Request{
		ours("update", "leases", "", 200), ours("update", "leases", "", 409), ours("get", "leases", "", 200), ours("create", "leases", "", 403),
		ours("create", "leases", "", 201), ours("watch", "nodeconfigs", "", 200), ours("get", "nodeconfigs", "", 200), ours("patch", "nodes", "status", 200),
		{Agent: "somebody/else", Verb: "get", Resource: "nodes"},
	} {
		got.add(r)
	}
	want := map[string]int{"get leases": 1, asksGuard: 1, "create leases": 1, "get nodeconfigs": 1, "patch nodes/status": 1}
	if got.renewals != 2 || got.watches["nodeconfigs"] != 1 || !maps.Equal(got.calls, want) || got.total() != 5 {
		t.Errorf("got %+v, want 2 renewals, a watch, and the calls %v", got, want)
	}
}

// More watches than one of each kind that is ended every five minutes at the soonest, and any of another kind, are too many.
func TestTallyBoundsWatchesByTheirTimeouts(t *testing.T) {
	for name, c := range map[string]struct {
		watches map[string]int
		n       int
		good    bool
	}{
		"none":         {n: 0, good: true},
		"as many":      {map[string]int{"nodeconfigs": 3, "nodeshadows": 3}, 6, true},
		"one too many": {map[string]int{"nodeconfigs": 4}, 4, false},
		"another kind": {map[string]int{"nodes": 1}, 1, false},
		"few in one":   {map[string]int{"nodeconfigs": 1, "nodeshadows": 4}, 5, false},
	} {
		y := &tally{watches: c.watches}
		if n, excess := y.begun(12 * time.Minute); n != c.n || (excess == nil) != c.good {
			t.Errorf("%s: got %d, excess %q, want %d and none: %t", name, n, excess, c.n, c.good)
		}
	}
	if got := atMost(12*time.Minute, renewal); got != 73 {
		t.Errorf("got %d renewals at most, want 73", got)
	}
}
