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
	mutate.Sample(t, []mutate.Mutant{
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
			Old: "return u.left && version != u.version", New: "return version != u.version"},
		{Name: "a pod that left is forgotten without a change", File: budget, Run: "TestEntryMayNeverBeSeen",
			Old: "return u.left && version != u.version", New: "return u.left"},
		{Name: "a change before the pod left forgets", File: budget, Run: "TestEntryMayNeverBeSeen",
			Old: ">= unitConfirm && version != u.leftAt", New: ">= unitConfirm"},
		{Name: "a lost eviction is spent for ever", File: budget, Run: "TestWhatMayHaveBeenAcceptedIsSpent",
			Old: "if now.Sub(u.spentAt) >= unitForget {", New: "if false {"},
		{Name: "units leak", File: budget, Run: "TestMemoryIsBounded",
			Old: "\t\t\tdelete(s.units, pod)\n", New: ""},
		{Name: "an older state is believed", File: budget, Run: "TestOlderStateOfABudgetIsIgnored",
			Old: "if now.Sub(b.seenAt) < versionKept {", New: "if false {"},
		{Name: "nodes with more pods left take units too", File: budget, Run: "TestBudgetIsSharedByTheFewestPodsLeft",
			Old: "free); gets == 0 {", New: "free); gets < 0 {"},
		{Name: "evictions meet at a budget", File: budget, Run: "TestEvictionsDoNotMeetAtABudget",
			Old: "if s.paced(b, free, now) {", New: "if false {"},
		{Name: "many pods go one after the other", File: budget, Run: "TestEvictionsDoNotMeetAtABudget",
			Old: "(work+perConflict-1)/perConflict", New: "1"},
		{Name: "pods that can't go yet count", File: budget, Run: "TestEvictionsDoNotMeetAtABudget",
			Old: "work = min(work, free) + b.flying", New: "work += b.flying"},
		{Name: "a slow eviction holds the next one back", File: budget, Run: "TestEvictionsDoNotMeetAtABudget",
			Old: "if u.flying && now.Sub(u.sentAt) < slowEviction {", New: "if u.flying {"},
		{Name: "a change does not open the budget", File: budget, Run: "TestRefusalClosesTheBudget",
			Old: "\tb.closed.reopen()\n\tfor", New: "\tfor"},
		{Name: "a second call frees a second slot", File: bounds, Run: "TestBudgetBoundsWhatIsInFlight|TestInFlightIsBounded",
			Old: "if t.ended {", New: "if false {"},
		{Name: "everybody tries an overloaded server", File: bounds, Run: "TestOverloadBacksOffGlobally",
			Old: "if s.server.steps > 0 && len(s.flying) > 0 {", New: "if false {"},
		{Name: "InFlight does not bind", File: fair, Run: "TestInFlightIsBounded|TestBoundsHoldUnderConcurrency",
			Old: "free := min(s.bucket.fill(now), slots)", New: "free := s.bucket.fill(now) + 0*slots"},
		{Name: "all nodes are half empty", File: fair, Run: "TestFleetDrainsWithinItsBudgets",
			Old: "cmp.Compare(c.remaining, d.remaining), c.since", New: "cmp.Compare(d.remaining, c.remaining), c.since"},
		{Name: "the big node starves", File: fair, Run: "TestNobodyStarvesForTheRate",
			Old: "if longest == nil || s.turn != fairTurn-1 {", New: "if true {"},
		{Name: "each answer of a round doubles the wait", File: backoff, Run: "TestOverloadOfOneRoundCountsOnce|TestRefusalsOfOneRoundCountOnce",
			Old: "fresh := ticket > b.raised", New: "fresh := true"},
		{Name: "an answer from before ends the wait", File: backoff, Run: "TestOverloadOfOneRoundCountsOnce",
			Old: "if ticket > b.raised {\n\t\tb.steps,", New: "if true {\n\t\tb.steps,"},
	})
}
