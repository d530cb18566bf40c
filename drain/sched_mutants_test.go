// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a Scheduler that is broken in any of these ways.
func TestSchedulerMutants(t *testing.T) {
	const budget, bounds, fair, backoff = "sched_budget.go", "scheduler.go", "allot.go", "backoff.go"
	mutate.Kill(t, []mutate.Mutant{
		{Name: "what was accepted is not spent", File: budget, Run: "TestFleetDrainsWithinItsBudgets",
			Old: "case VerdictAccepted:\n\t\tu.spentAt = now\n", New: "case VerdictAccepted:\n"},
		{Name: "what may have been accepted is not spent", File: budget, Run: "TestWhatMayHaveBeenAcceptedIsSpent",
			Old: "case VerdictUnknown, VerdictReplaced:", New: "case VerdictReplaced:"},
		{Name: "any entry of that name counts", File: budget, Run: "TestEntryOfAnEarlierPodShowsNothing",
			Old: "if listed && (!u.listed || !entry.Equal(&u.entry)) {", New: "if listed && !entry.IsZero() {"},
		{Name: "what the status shows is counted again", File: budget, Run: "TestStatusMayShowItBeforeTheAnswer",
			Old: "if !u.shown && u.pod != pod {", New: "if u.pod != pod {"},
		{Name: "a pod that is asked again is counted again", File: budget, Run: "TestPodThatIsAskedAgainIsCountedOnce",
			Old: "if !u.shown && u.pod != pod {", New: "if !u.shown {"},
		{Name: "any change of the budget forgets", File: budget, Run: "TestEntryMayNeverBeSeen",
			Old: "case !u.left || version == u.version:", New: "case version == u.version:"},
		{Name: "a pod that left is forgotten without a change", File: budget, Run: "TestEntryMayNeverBeSeen",
			Old: "case !u.left || version == u.version:", New: "case !u.left || version < 0:"},
		{Name: "a change before the pod left forgets", File: budget, Run: "TestEntryMayNeverBeSeen",
			Old: "return age >= unitConfirm && u.budget.version != u.leftAt", New: "return age >= unitConfirm"},
		{Name: "a lost eviction is spent for ever", File: budget, Run: "TestWhatMayHaveBeenAcceptedIsSpent",
			Old: "case age >= unitForget:\n\t\treturn true", New: "case age >= unitForget:\n\t\treturn false"},
		{Name: "units leak", File: budget, Run: "TestMemoryIsBounded",
			Old: "\t\t\tdelete(s.units, pod)\n", New: ""},
		{Name: "an older state is believed", File: budget, Run: "TestOlderStateOfABudgetIsIgnored",
			Old: "if now.Sub(b.seenAt) < versionKept {", New: "if false {"},
		{Name: "nodes with more pods left take units too", File: budget, Run: "TestBudgetIsSharedByTheFewestPodsLeft",
			Old: "free); gets == 0 {", New: "free); gets < 0 {"},
		{Name: "an old demand counts", File: budget, Run: "TestDemandThatIsNotRefreshedNoLongerCounts",
			Old: "n.live(now) && !yield(", New: "!yield("},
		{Name: "a change does not open the budget", File: budget, Run: "TestRefusalClosesTheBudget",
			Old: "\tb.closed.reopen()\n\tfor", New: "\tfor"},
		{Name: "a refusal of an older state closes the budget", File: budget, Run: "TestRefusalOfAnOlderStateDoesNotClose",
			Old: "\tif changed {\n\t\tb.closed.reopen()\n", New: "\tif false {\n"},
		{Name: "contention changes nothing", File: budget, Run: "TestContentionHalvesWhatIsInFlight",
			Old: "b.limit = max(1, min(b.limit, b.flying+1)/2)", New: ""},
		{Name: "PerBudget does not bind", File: budget, Run: "TestBudgetBoundsWhatIsInFlight",
			Old: "case b.flying >= b.limit:", New: "case false:"},
		{Name: "a second call frees a second slot", File: bounds, Run: "TestBudgetBoundsWhatIsInFlight|TestInFlightIsBounded",
			Old: "if t.ended {", New: "if false {"},
		{Name: "everybody tries an overloaded server", File: bounds, Run: "TestOverloadBacksOffGlobally",
			Old: "if s.server.steps > 0 && len(s.flying) > 0 {", New: "if false {"},
		{Name: "nodes that went are remembered", File: bounds, Run: "TestMemoryIsBounded",
			Old: "\t\t\ts.drop(name)\n", New: "_ = name\n"},
		{Name: "InFlight does not bind", File: fair, Run: "TestInFlightIsBounded|TestBoundsHoldUnderConcurrency",
			Old: "free := min(s.bucket.fill(now), slots)", New: "free := s.bucket.fill(now) + 0*slots"},
		{Name: "the bucket never runs dry", File: fair, Run: "TestBurstThenRate",
			Old: "b.tokens = max(0, b.tokens-1)", New: "b.tokens = max(0, b.tokens)"},
		{Name: "all nodes are half empty", File: fair, Run: "TestFleetDrainsWithinItsBudgets",
			Old: "cmp.Compare(c.remaining, d.remaining), c.since", New: "cmp.Compare(d.remaining, c.remaining), c.since"},
		{Name: "the big node starves", File: fair, Run: "TestNobodyStarvesForTheRate",
			Old: "if longest == nil || s.turn != fairTurn-1 {", New: "if true {"},
		{Name: "an absent node keeps its place", File: fair, Run: "TestPlaceInTheQueueIsKeptOnlyForAWhile",
			Old: "&& !now.After(n.waitsFor) }", New: "}"},
		{Name: "each answer of a round doubles the wait", File: backoff, Run: "TestOverloadOfOneRoundCountsOnce|TestRefusalsOfOneRoundCountOnce",
			Old: "fresh := ticket > b.raised", New: "fresh := true"},
		{Name: "an answer from before ends the wait", File: backoff, Run: "TestOverloadOfOneRoundCountsOnce",
			Old: "if ticket > b.raised {\n\t\tb.steps,", New: "if true {\n\t\tb.steps,"},
		{Name: "the server's wish is not heard", File: backoff, Run: "TestOverloadHonoursRetryAfter",
			Old: "wish.After(b.until) {", New: "false {\n\t\t_ = wish"},
	})
}
