// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// planRounds says what each budget means for the whole plan, by namespace and name, for those with a pod that has to leave.
func planRounds(ix *planBudgets, nodes []NodePlan) ([]BudgetPlan, int) {
	var plans []BudgetPlan
	rounds := 0
	for i := range nodes {
		if nodes[i].Counts.Remaining > 0 {
			rounds = 1
		}
	}
	for i := range ix.entries {
		b := ix.entries[i].state
		if b == nil || b.pods == 0 {
			continue
		}
		p := BudgetPlan{Budget: types.NamespacedName{Namespace: b.pdb.Namespace, Name: b.pdb.Name}, Pods: b.pods, Allowed: b.allowed()}
		p.Never = b.pdb.Status.DisruptionsAllowed <= 0 && b.never()
		if !p.Never {
			p.Rounds = b.rounds()
		}
		plans = append(plans, p)
		rounds = max(rounds, p.Rounds)
	}
	slices.SortFunc(plans, func(a, b BudgetPlan) int {
		return cmp.Or(cmp.Compare(a.Budget.Namespace, b.Budget.Namespace), cmp.Compare(a.Budget.Name, b.Budget.Name))
	})
	return plans, rounds
}

// rounds is a lower bound: each round replaces as many pods as the budget allows when all are healthy. Where that is not known yet,
// the bound is one round.
func (b *planBudget) rounds() int {
	each := b.allowed()
	switch st := &b.pdb.Status; {
	case !b.stale() && st.ExpectedPods > 0:
		each = max(each, int(st.ExpectedPods-st.DesiredHealthy))
	case b.pdb.Spec.MaxUnavailable != nil && b.pdb.Spec.MaxUnavailable.IntValue() > 0:
		each = max(each, b.pdb.Spec.MaxUnavailable.IntValue())
	}
	if each == 0 {
		return 1
	}
	return max(1, (b.guarded+each-1)/each)
}
