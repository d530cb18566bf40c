// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The replays in the suite of ledgers catch a store and a protocol that lack the rule which each of them is about.
func TestReplayMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "the store takes any version", File: "memory.go", Run: "TestMemory/replay-1", Old: "version != is && (", New: "false && ("},
		{Name: "any end frees the slot", File: "../protocol/ledger.go", Run: "TestMemory/replay-3",
			Old: "if err := sh.ended(l.Slots[i].Attempt); err != nil {", New: "if err := sh.ended(l.Slots[i].Attempt); err != nil && sh.Report.Attempt == 0 {"},
		{Name: "a slot is freed without a fact", File: "../protocol/ledger.go", Run: "TestMemory/replay-4",
			Old: "if err := sh.ended(l.Slots[i].Attempt); err != nil {", New: "if err := sh.ended(l.Slots[i].Attempt); err != nil && false {"},
		{Name: "a new shadow revokes nothing", File: "../protocol/shadow.go", Run: "TestMemory/replay-5", Old: "Orders{Revoked: l.Epoch}", New: "Orders{Revoked: 0 * l.Epoch}"},
		{Name: "an abort is acknowledged at once", File: "../protocol/orders.go", Run: "TestMemory/replay-7",
			Old: "!= nil && len(waiting) == 0, waiting", New: "!= nil, waiting"},
	})
}
