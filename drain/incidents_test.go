// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "units of a budget that are spent are allowed again",
			Func:    "(*planBudget).allowed",
			Replace: "min(int(b.pdb.Status.DisruptionsAllowed), room)-b.spent",
			With:    "min(int(b.pdb.Status.DisruptionsAllowed), room)",
			Run:     "FuzzPlan",
		},
		{
			Why:     "each node has a budget for itself",
			Func:    "(*nodePass).spend",
			Replace: "b.given++",
			Run:     "FuzzPlan",
		},
		{
			Why:  "a stale budget is believed",
			Func: "(*planBudget).allowed",
			Replace: `if b.stale() {
		return 0
	}`,
			Run: "FuzzPlan",
		},
		{
			Why:     "a grace period may be zero",
			Func:    "(*nodePass).grace",
			Replace: "(own == nil || *own != 0)",
			With:    "true",
			Run:     "TestGracePeriodIsNeverZero",
		},
		{
			Why:     "a node is marked out of service without proof that its machine is off",
			Func:    "ladderOf",
			Replace: "e.Step != StepOutOfService || !v.PoweredOff",
			With:    "e.Step != StepOutOfService",
			Run:     "TestOutOfServiceNeedsProof",
		},
		{
			Why:     "an eviction without an answer does not charge the budget",
			Func:    "(*Scheduler).answered",
			Replace: "verdictUnknown",
			With:    `"none"`,
			Run:     "TestWhatMayHaveBeenAcceptedIsSpent",
		},
		{
			Why:     "the cap of evictions in flight does not bind",
			Func:    "(*Scheduler).permit",
			Replace: "min(s.bucket.fill(now), slots)",
			With:    "s.bucket.fill(now) + 0*slots",
			Run:     "TestInFlightIsBounded|TestBoundsHoldUnderConcurrency",
		},
		{
			Why:     "a frozen fleet goes on draining",
			Func:    "(*pass).stopped",
			Replace: "p.d.registry.nodes(p.d.o.Cache)",
			With:    "nil",
			Run:     "TestFreezeStopsDrainsUnderWay",
		},
		{
			Why:     "a hold has no upper bound",
			Func:    "(*pass).beginHold",
			Replace: "!p.now.Before(p.r.HoldUntil) || p.r.HoldUntil.Sub(p.now) > MaxHold",
			With:    "!p.now.Before(p.r.HoldUntil)",
			Run:     "TestHoldOutOfBounds",
		},
		{
			Why:     "a power check without an answer counts as proof",
			Func:    "(*pass).poweredOff",
			Replace: "off && err == nil",
			With:    "off || err != nil",
			Run:     "TestOutOfServiceOnlyWithProof",
		},
		{
			Why:     "a node is drained because the cache shows no pods",
			Func:    "(*pass).confirm",
			Replace: "plan.Counts.Remaining == 0",
			With:    "true",
			Run:     "TestDrainedIsConfirmed",
		},
		{
			Why:     "a node of the same name and another UID is drained",
			Func:    "(*pass).run",
			Replace: `(uid != "" && p.node.UID != uid)`,
			With:    `uid == "none"`,
			Run:     "TestNodeDeletedAndReplaced",
		},
		{
			Why:     "a node that was uncordoned by others is drained on",
			Func:    "(*pass).uncordoned",
			Replace: "p.st.Phase, p.st.Reason = Paused, UncordonedByOther",
			With:    "p.st.Phase, p.st.Reason = Draining, UncordonedByOther",
			Run:     "TestUncordon",
		},
		{
			Why:     "a release removes the cordon of a later attempt",
			Func:    "(*NodeDrainer).Release",
			Replace: "is > attempt",
			With:    "is < 0",
			Run:     "TestAttemptIsDrained",
		},
		{
			Why:     "a new process believes its cache about marks",
			Func:    "newMemory",
			Replace: "m.unsure.Store(true)",
			Run:     "TestReleaseByANewProcess",
		},
		{
			Why:     "MaxNodes is checked against a cache that is behind",
			Func:    "(*Drainer).findEntry",
			Replace: "d.registry.newest(d.o.Cache, name)",
			With:    "d.o.Cache.Node(name)",
			Run:     "TestMaxNodesHolds",
		},
	})
}
