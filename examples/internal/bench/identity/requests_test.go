// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import "testing"

// TestPaceIsThatOfTheInterval shows that a member which renews too often or too seldom is short, though each renewal is one request.
func TestPaceIsThatOfTheInterval(t *testing.T) {
	owed := steady{seconds: 20.4}.owed()
	if owed < 199.9 || owed > 200.1 {
		t.Fatalf("20 members owe %.1f renewals in 20.4 s at 2 s and 2 %% of jitter, want 200", owed)
	}
	run := func(renewals float64) steady {
		return steady{renewals: renewals, requests: 1, served: 1, seconds: 20.4}
	}
	for _, row := range []struct {
		name string
		runs []steady
		good bool
	}{
		{"as often as it should", []steady{run(200), run(197), run(204)}, true},
		{"twice as often", []steady{run(400), run(400)}, false},
		{"twice as often in one run", []steady{run(200), run(400), run(200)}, false},
		{"without its jitter and more", []steady{run(212)}, false},
		{"half as often", []steady{run(100)}, false},
		{"never measured", nil, false},
	} {
		if l := pace(row.runs, nil, nil); l.good != row.good {
			t.Errorf("%s: got good: %t with %s, want %t", row.name, l.good, l.ours, row.good)
		}
	}
}
