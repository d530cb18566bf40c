// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "a slot is released without a fact",
			Package: "../protocol",
			Func:    "Ledger.ended",
			Replace: "sh.ended(l.Slots[i].Attempt)",
			With:    "error(nil)",
			Run:     "TestMemory/replay-4",
		},
		{
			Why:     "a new shadow revokes nothing",
			Package: "../protocol",
			Func:    "NewShadow",
			Replace: "l.Epoch",
			With:    "0 * l.Epoch",
			Run:     "TestMemory/replay-5",
		},
		{
			Why:     "a closed ledger admits",
			Package: "../protocol",
			Func:    "(*Draft).Admit",
			Replace: "d.ClosedFor(a.Rollout)",
			With:    "(*Closure)(nil)",
			Run:     "TestTheProtocolHolds/pause_and_continue",
		},
		{
			Why:     "the cap of a zone does not bind",
			Package: "../protocol",
			Func:    "Ledger.over",
			Replace: "!counts(c.Key, a.Keys)",
			With:    `c.Key != "" || !counts(c.Key, a.Keys)`,
			Run:     "TestTheProtocolHolds/one_of_each_zone",
		},
		{
			Why:     "a revocation is withdrawn",
			Package: "../protocol",
			Func:    "Shadow.Revoke",
			Replace: "o.Revoked >= k",
			With:    "o.Revoked == k",
			Run:     "TestTheProtocolHolds/three_nodes_one_at_a_time",
		},
		{
			Why:     "an agent proceeds before it is told",
			Package: "../protocol",
			Func:    "Shadow.heed",
			Replace: "o.Proceed >= r.Attempt && o.Undo < r.Attempt",
			With:    "true",
			Run:     "TestTheProtocolHolds/every_phase$",
		},
	})
}
