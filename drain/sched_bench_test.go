// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What one question costs when 1,000 nodes want the same budget, and it is short.
func BenchmarkTakeUnderABudgetOfAThousandNodes(b *testing.B) {
	now := simStart
	s, err := NewScheduler(SchedulerOptions{Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	f := sched{budget: types.NamespacedName{Namespace: "ns", Name: "web"}}
	s.observe([]*policyv1.PodDisruptionBudget{f.state("1", 10, nil)})
	for i := range 1000 {
		s.want(fmt.Sprintf("node-%d", i), demand{remaining: 30, since: now, budgets: map[types.NamespacedName]int{f.budget: 30}})
	}
	b.ReportAllocs()
	for b.Loop() {
		if ticket, _ := s.take("node-999", PodRef{Name: "p"}, f.budget); ticket != nil {
			b.Fatal("got a ticket, want it kept for nodes that come first")
		}
	}
}
