// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestUnitThatNoStatusShowsIsAskedForSoon protects a drain from standing still: the status that shows the unit may be replaced before
// anybody sees it, and then nothing changes any more that could wake the drain.
func TestUnitThatNoStatusShowsIsAskedForSoon(t *testing.T) {
	budget := types.NamespacedName{Namespace: "ns", Name: "web"}
	pod := PodPlan{PodRef: PodRef{Namespace: "ns", Name: "web-0", UID: "1"}, Action: Wait, Reason: BudgetExhausted, Budgets: []string{"web"}, Guarded: true}
	for name, tc := range map[string]struct {
		spent map[types.NamespacedName]int
		pod   func(*PodPlan)
		want  time.Duration
	}{
		"a unit is spent":             {spent: map[types.NamespacedName]int{budget: 1}, want: unitConfirm},
		"the budget just allows none": {want: 0},
		"a unit of another budget":    {spent: map[types.NamespacedName]int{{Namespace: "ns", Name: "db"}: 1}, want: 0},
		"the server will not ask it":  {spent: map[types.NamespacedName]int{budget: 1}, pod: func(p *PodPlan) { p.Guarded = false }, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			waiting := pod
			if tc.pod != nil {
				tc.pod(&waiting)
			}
			p := &pass{plan: &NodePlan{Pods: []PodPlan{waiting}}}
			p.awaitSpent(Snapshot{Spent: tc.spent})
			if p.after != tc.want {
				t.Errorf("the next pass is asked for after %s, want %s", p.after, tc.want)
			}
		})
	}
}
