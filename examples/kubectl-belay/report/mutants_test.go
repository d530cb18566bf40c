// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// Each way to say something else of a rollout is noticed.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a status of the spec before counts", File: "status.go", Run: "TestStatus", Old: "Current: st.ObservedGeneration == r.Generation && st.Phase != \"\"", New: "Current: st.Phase != \"\""},
		{Name: "a stuck drain stands", File: "status.go", Run: "TestStatus", Old: "s.Stands = s.NeedsSomebody && !meta", New: "s.Stands = s.NeedsSomebody || !meta"},
		{Name: "a request is always carried out", File: "status.go", Run: "TestStatus", Old: "Handled: st.HandledRequest == v.Request", New: "Handled: true"},
		{Name: "to overlap is no trouble", File: "status.go", Run: "TestOverlap", Old: "v1alpha1.ConditionDegraded, v1alpha1.ConditionOverlapping:", New: "v1alpha1.ConditionDegraded:"},
		{Name: "a deletion is not said", File: "status.go", Run: "TestStatusOfADeleted", Old: "Deleted: r.DeletionTimestamp, ", New: ""},
		{Name: "a way back for who is deleted", File: "status.go", Run: "TestStatusOfADeleted", Old: " || s.Deleted != nil", New: ""},
		{Name: "verbs of every phase", File: "status.go", Run: "TestStatus", Old: "if rule.In == phase {", New: "if true {"},
		{Name: "a line is as it was written", File: "status.go", Run: "TestAReportHolds", Old: "page.Cut(page.Clean(text), page.Width)", New: "page.Cut(text, page.Width)"},
		{Name: "a rollback is offered in any case", File: "status.go", Run: "TestRollbackIsOffered", Old: "BackOf(r, revisions); err == nil {", New: "BackOf(r, revisions); err == nil || back == nil {\n\t\tback = &Back{}"},
		{Name: "a pause is believed", File: "answer.go", Run: "TestAnswer", Old: "a.Final = !stops || a.Proven", New: "a.Final = true"},
		{Name: "a refusal is none", File: "answer.go", Run: "TestAnswer", Old: "case handled && r.Status.Refusal != \"\":", New: "case false:"},
		{Name: "DaemonSets are drained", File: "why.go", Run: "TestWhy", Old: "owner != nil && owner.Kind == \"DaemonSet\"", New: "owner != nil && owner.Kind == \"-\""},
		{Name: "budgets don't matter", File: "story.go", Run: "TestWhy", Old: "case p.Allowed != nil && *p.Allowed <= 0:", New: "case false:"},
		{Name: "every plan ends", File: "plan.go", Run: "TestPlan", Old: "\tcase rollout.EndStalled:\n", New: "\tcase \"\":\n"},
	})
}
