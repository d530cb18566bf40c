// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "the cache is believed that a Node is gone",
			Func:    "(*pass).gone",
			Replace: "gone, err = p.c.o.Fleet.Gone(ctx, n.Node, n.UID)",
			With:    "gone = true",
			Run:     "TestCacheIsNotBelieved",
		},
		{
			Why:     "a lost ledger counts as an empty one",
			Func:    "(*pass).newLedger",
			Replace: "len(shadows) > 0",
			With:    "len(shadows) < 0",
			Run:     "TestLedgerDeleted",
		},
		{
			Why:     "a cordon of others is released",
			Func:    "(*nodeView).away",
			Replace: "n.Unschedulable && !n.held",
			With:    "false",
			Run:     "TestForeignCordon",
		},
		{
			Why:  "a slot is released before its node is uncordoned",
			Func: "(*pass).giveBack",
			Replace: `if through >= p.ledger.Slots[i].Attempt {
			p.snapshot[p.byUID[n.UID]].Shadow = &earlier
		}`,
			With: `if through >= p.ledger.Slots[i].Attempt {
			_ = earlier
		}`,
			Run: "TestSlotIsFreed",
		},
		{
			Why:  "a conflict of the ledger is ignored",
			Func: "(*pass).storeLedger",
			Replace: `switch {
	case errors.Is(err, rollout.ErrConflict):
		return errAgain
	case err != nil:
		return fmt.Errorf("controller: storing the ledger: %w", err)
	}`,
			With: `switch {
	case errors.Is(err, rollout.ErrConflict):
		
	case err != nil:
		return fmt.Errorf("controller: storing the ledger: %w", err)
	}`,
			Run: "TestOvertaken",
		},
		{
			Why:     "a slot is released before its outcome is stored",
			Func:    "(*pass).round",
			Replace: "p.foretell(next)",
			With:    "true, error(nil)",
			Run:     "TestOutcomeOutlives",
		},
		{
			Why:     "a node of unknown health is granted",
			Func:    "(*pass).marked",
			Replace: "rides && d.Do != protocol.EventGrant",
			With:    "rides",
			Run:     "TestNoGrant",
		},
	})
}
