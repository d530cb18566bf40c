// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a plan that is broken in any of these ways.
func TestPlanMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "what is spent is allowed again", File: "budget.go", Run: "FuzzPlan",
			Old: "min(int(b.pdb.Status.DisruptionsAllowed), room)-b.spent)", New: "min(int(b.pdb.Status.DisruptionsAllowed), room))"},
		{Name: "a dip is the new number", File: "budget.go", Run: "TestBudgetThatDips",
			Old: "dip.Pods > b.expected &&", New: "dip.Pods < 0 &&"},
		{Name: "a dip lasts for ever", File: "budget.go", Run: "TestBudgetThatDips",
			Old: "&& ix.now.Before(dip.Until) {", New: "{"},
		{Name: "each node has the budget for itself", File: "budget.go", Run: "FuzzPlan",
			Old: "\t\tb.given++\n", New: ""},
		{Name: "a stale budget is believed", File: "budget.go", Run: "FuzzPlan",
			Old: "\tif b.stale() {\n\t\treturn 0\n\t}\n", New: ""},
		{Name: "unready pods always pass", File: "budget.go", Run: "FuzzPlan",
			Old: "*policy == policyv1.AlwaysAllow ||", New: "*policy != \"\" ||"},
		{Name: "the second budget is not seen", File: "budget.go", Run: "FuzzPlan",
			Old: "b.pdb.Name), true\n", New: "b.pdb.Name), false\n"},
		{Name: "the fullest node goes first", File: "plan.go", Run: "TestBudgetGoesToTheNode",
			Old: "cmp.Compare(a.remaining, b.remaining)", New: "cmp.Compare(b.remaining, a.remaining)"},
		{Name: "the order of the cache decides", File: "plan.go", Run: "FuzzPlan",
			Old: "\tslices.SortFunc(n.work, compareWork)\n", New: ""},
		{Name: "mirror pods by annotation alone", File: "podplan.go", Run: "TestEveryReason",
			Old: `o.Kind == "Node" && o.APIVersion == "v1"`, New: `o.Kind == "None"`},
		{Name: "no margin after the grace period", File: "podplan.go", Run: "TestTerminatingPod",
			Old: "w.pod.DeletionTimestamp.Add(planMargin)", New: "w.pod.DeletionTimestamp.Time"},
		{Name: "an answer does not hold back a deletion", File: "podplan.go", Run: "TestAnswersHoldBack",
			Old: "due != nil && answer.ofBudget()", New: "due != nil"},
		{Name: "the ladder passes by the order", File: "podplan.go", Run: "FuzzPlan",
			Old: "case w.gated:\n", New: "case w.gated && due == nil:\n"},
		{Name: "a grace period of 0 of the pod's own", File: "podplan.go", Run: "TestGracePeriodIsNeverZero",
			Old: "(own == nil || *own != 0)", New: "own != nil || own == nil"},
		{Name: "no proof that the machine is off", File: "plan_ladder.go", Run: "TestOutOfServiceNeedsProof",
			Old: "e.Step != StepOutOfService || !v.PoweredOff", New: "e.Step != StepOutOfService"},
		{Name: "tiers wait for ever", File: "plan_tiers.go", Run: "TestTierDeadline",
			Old: "end.IsZero() || n.now.Before(end)", New: "true"},
		{Name: "hooks start outside the windows", File: "plan_window.go", Run: "TestNothingStartsOutside",
			Old: "(w.Action != Hook || !w.fresh)", New: "true"},
		{Name: "a silent responder is waited for", File: "plan_hook.go", Run: "TestPodWithHook",
			Old: "case !state.LastBeat.IsZero() && !n.now", New: "case false && !n.now"},
		{Name: "a claim that is not known is safe", File: "removal.go", Run: "TestVolumeThatDoesNotLeave",
			Old: "if claim == nil {\n\t\t\treturn", New: "if claim == nil {\n\t\t\tcontinue\n\t\t\treturn"},
		{Name: "a pod's label allows the loss of a removed node's data", File: "removal.go", Run: "TestRuleAllowsLoss",
			Old: "b.byRule && b.kind == BehaviorEvict", New: "b.kind == BehaviorEvict"},
	})
}
