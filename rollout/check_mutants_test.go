// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// R-RO-25, R-RO-29: each way to break the checks, the memory of a planner, and the differences of a history is noticed.
func TestCheckMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "checks hold nothing back", File: "check.go", Run: "TestChecksEnforce", Old: "if f.Mode == Enforce {", New: "if f.Mode == \"\" {"},
		{Name: "warnings hold back", File: "check.go", Run: "TestChecksEnforce", Old: "if f.Mode == Enforce {", New: "if f.Mode != \"\" {"},
		{Name: "the quorum is kept though it is a warning", File: "admit.go", Run: "TestChecksEnforce|TestFindings", Old: "p.policy.quorumMode() == Enforce", New: "p.policy.quorumMode() != \"\""},
		{Name: "who is at its turn is not available", File: "check.go", Run: "TestFindings|TestChecksEnforce", Old: "if m.class == flying || m.node.Away == \"\" &&", New: "if m.node.Away == \"\" &&"},
		{Name: "findings stay when all had their turn", File: "check.go", Run: "TestFindings", Old: "if left == 0 || up", New: "if left < 0 || up"},
		{Name: "findings are not said", File: "decide.go", Run: "TestChecksEnforce", Old: "	for _, f := range p.findings() {\n", New: "	for _, f := range p.findings()[:0] {\n"},
		{Name: "a planner goes on with old members", File: "planner.go", Run: "TestPlannerRemembers|TestRandomRollouts",
			Old: "	*old = (*old)[:n]\n	clear(*old)\n", New: "	*old = (*old)[:n]\n"},
		{Name: "a planner goes on with old keys", File: "planner.go", Run: "TestPlannerRemembers|TestRandomRollouts",
			Old: "		*old = make(map[K]V, n)\n	}\n	clear(*old)\n", New: "		*old = make(map[K]V, n)\n	}\n"},
		{Name: "a draft changes what it was made from", File: "protocol/draft.go", Run: "TestRandomRollouts", Old: "	if !d.own {\n", New: "	if !d.own && d.Epoch < 0 {\n"},
		{Name: "what was refused stays in a draft", File: "protocol/draft.go", Run: "TestRandomRollouts|TestCapsBind",
			Old: "	if over := next.over(a, caps, absent); over != nil {\n", New: "	d.Ledger = next\n	if over := next.over(a, caps, absent); over != nil {\n"},
		{Name: "fields that were added are no change", File: "diff.go", Run: "TestDiff", Old: "	default:\n		d.changes = append(d.changes, Change{Path: path, After: written(is)})\n", New: "	default:\n"},
		{Name: "large numbers are rounded", File: "diff.go", Run: "TestDiff", Old: "	decoder.UseNumber()", New: "	_ = decoder.UseNumber"},
		{Name: "of documents the first counts", File: "diff.go", Run: "TestDiff", Old: "|| strings.Contains(\"\\n\"+text, \"\\n---\")", New: ""},
	})
}
