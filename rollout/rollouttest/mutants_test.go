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

// The explorer catches steps that are broken.
func TestExplorerMutants(t *testing.T) {
	const worlds = "TestTheProtocolHolds/"
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a closed ledger admits", File: "../protocol/draft.go", Run: worlds + "pause_and_continue",
			Old: "if c := d.ClosedFor(a.Rollout); c != nil {", New: "if c := d.ClosedFor(a.Rollout); c != nil && false {"},
		{Name: "a closed ledger lets retry", File: "../protocol/ledger.go", Run: worlds + "retries",
			Old: "if c := l.ClosedFor(rollout); c != nil {", New: "if c := l.ClosedFor(rollout); c != nil && false {"},
		{Name: "an end of one stop is the end of all", File: "../protocol/ledger.go", Run: worlds + "a_pause_in_an_abort",
			Old: "return c.Scope == scope && c.Request == request })", New: "return true })"},
		{Name: "a stop is acknowledged at once", File: "../protocol/orders.go", Run: worlds + "abort_and_resume",
			Old: "!= nil && len(waiting) == 0, waiting", New: "!= nil, waiting"},
		{Name: "a cap of a zone is not asked", File: "../protocol/caps.go", Run: worlds + "one_of_each_zone",
			Old: "if !counts(c.Key, a.Keys) {", New: `if c.Key != "" || !counts(c.Key, a.Keys) {`},
		{Name: "a revocation goes back", File: "../protocol/orders.go", Run: worlds + "three_nodes_one_at_a_time",
			Old: "case o.Revoked >= k:", New: "case o.Revoked == k:"},
		{Name: "an agent does not wait for the word", File: "../protocol/agent.go", Run: worlds + "every_phase$",
			Old: "to, ordered := PhaseApplying, o.Proceed >= r.Attempt && o.Undo < r.Attempt", New: "to, ordered := PhaseApplying, true"},
		{Name: "a slot goes with the report of another attempt", File: "../protocol/shadow.go", Run: worlds + "three_nodes_one_at_a_time",
			Old: "case r.Attempt >= k, sh.Orders.Revoked >= k:", New: "case r.Attempt > 0, sh.Orders.Revoked >= k:"},
		{Name: "a step writes to its argument", File: "../protocol/ledger.go", Run: worlds + "retries",
			Old: "Slots: slices.Clone(l.Slots)}", New: "Slots: l.Slots}"},
		{Name: "a new shadow revokes what is yet to come", File: "../protocol/shadow.go", Run: worlds + "shadows_are_lost",
			Old: "Orders{Revoked: l.Epoch}", New: "Orders{Revoked: l.Epoch + 1}"},
	})
}

// Two walks of one world are not alike when one of them forgets what may still be read.
func TestReadsMutants(t *testing.T) {
	const run = "TestNothingIsLost/"
	mutate.Sample(t, []mutate.Mutant{
		{Name: "what past shadows show is forgotten", File: "reads.go", Run: run + "abort,_retry_and_loss",
			Old: "union(n.shown, w.shown(shadow))", New: "w.shown(shadow)"},
		{Name: "the slots that a node had are forgotten", File: "reads.go", Run: "TestNothingIsLostWithoutARule",
			Old: "for i := range nodes {", New: "for i := range nodes {\n\t\tnodes[i].slots = nil"},
		{Name: "the shadows that may be made are forgotten", File: "reads.go", Run: run + "abort,_retry_and_loss",
			Old: "with(nodes[i].fresh, ", New: "with(nil, "},
		{Name: "a version stands for another one that it is not like", File: "reads.go", Run: run + "two_of_three",
			Old: "add(op, k)", New: "add(op, 1)"},
	})
}
