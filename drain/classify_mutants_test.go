// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestClassifyMutants shows that the tables would notice.
func TestClassifyMutants(t *testing.T) {
	mutant := func(name, before, after string) mutate.Mutant {
		return mutate.Mutant{Name: name, File: "classify.go", Old: before, New: after, Run: "^TestClassify[ROB]"}
	}
	mutate.Sample(t, []mutate.Mutant{
		mutant("a webhook's 429 slows everybody", "return refused || s.Code > http.StatusInternalServerError", "return false"),
		mutant("a policy reads like RBAC", `c.Type == "" && c.Field == "" && c.Message != ""`, "false"),
		mutant("a path that is not served ends the pod", "causeOf(s, metav1.CauseTypeUnexpectedServerResponse) != nil", "false"),
		mutant("a deleted budget ends the pod", `case isKind(s, "pod"):`, `case isKind(s, "pod") || isKind(s, "poddisruptionbudget"):`),
		mutant("a stale budget counts as empty", "case s.Details.RetryAfterSeconds > 0:", "case false:"),
		mutant("an eviction that still runs was lost", "s.Reason == metav1.StatusReasonTimeout && s.Details != nil && s.Details.RetryAfterSeconds > 0", "true"),
		mutant("any 500 is two budgets", "s.Reason == metav1.StatusReasonUnknown && s.Details == nil {\n\t\treturn VerdictMultipleBudgets", "true {\n\t\treturn VerdictMultipleBudgets"),
		mutant("the budget's numbers are lost", `a.Message += " " + c.Message`, "_ = c"),
		mutant("half a letter", `strings.ToValidUTF8(message[:MaxAnswerMessage], "")`, "message[:MaxAnswerMessage]"),
	})
}
