// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// R-RO-18, R-RO-28: each way to lose what happens to a node after its first outcome is noticed.
func TestOutcomeMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "the first outcome stays", File: "outcome_list.go", Run: "TestNodeThatFallsBack|TestFleetThatFalls",
			Old: "if !detectFailed(e.Result) || detectFailed(p.progress.Outcomes[i].Result) {", New: "if i >= 0 {"},
		{Name: "who falls back is not seen", File: "plan.go", Run: "TestNodeThatFallsBack|TestFleetThatFalls", Old: "	p.relapses()\n", New: ""},
		{Name: "old records are relapses", File: "outcome_list.go", Run: "TestOldRecord",
			Old: "return e.Result == Succeeded && r.Attempt >= e.Attempt", New: "return e.Result == Succeeded"},
		{Name: "who runs something else has relapsed", File: "outcome_list.go", Run: "TestOldRecord|TestStagesGo|TestNodeThatChangesGroups",
			Old: "|| protocol.ParseRevision(r.Revision) != target {", New: "{"},
		{Name: "failures of long ago count", File: "outcome_list.go", Run: "TestRelapseAfter", Old: "p.now.Sub(e.Since) >= healed", New: "p.now.Before(e.Since)"},
		{Name: "failures are forgotten at once", File: "outcome_list.go", Run: "TestNodeThatFallsBack", Old: "p.now.Sub(e.Since) >= healed", New: "p.now.After(e.Since)"},
		{Name: "a critical node may fail again", File: "outcome.go", Run: "TestCriticalNodeMayNotFailLater",
			Old: "if counts && first && e.Critical {", New: "if counts && first && e.Critical && e.Attempts == 1 {"},
		{Name: "a freeze goes by the name of one that was lifted", File: "verbs.go", Run: "TestCriticalNodeMayNotFailLater",
			Old: "if !slices.Contains(p.progress.Lifted, request) {", New: "if request != \"\" {"},
	})
}
