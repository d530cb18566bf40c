// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestBrokenRequirementsAreCaught breaks one requirement each, and demands that the real server shows it.
func TestBrokenRequirementsAreCaught(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{
			Name: "members of a quorum are not looked for", File: "../../drain/removal.go", Run: "^TestRemovalNamesWhatTheNodeTakesWithIt$",
			Old: "if !r.AllowQuorum && b.rule != nil && b.rule.Quorum {", New: "if false {",
		},
		{
			Name: "unready pods put nothing off", File: "../../drain/removal.go", Run: "^TestNodeWithAnUnreadyPodIsLeftForLater$",
			Old: "if n.p.RequireHealthy && skipped", New: "if false && skipped",
		},
		{
			Name: "a drain begins in a frozen fleet", File: "../../drain/stage.go", Run: "^TestCrashLoopOnAReturnedNodeStopsTheFleet$",
			Old: "frozenBy(p.d.registry.nodes(p.d.o.Cache), p.r.Holder); node != \"\" {\n\t\tp.st.Reason, p.st.Message", New: "frozenBy(nil, p.r.Holder); node != \"\" {\n\t\tp.st.Reason, p.st.Message",
		},
		{
			Name: "each pass starts the age anew", File: "../../drain/report.go", Run: "^TestMetricsTellABlockedDrain$",
			Old: "if !known || s.reason != reason {", New: "if !known || s.reason != reason || s.at != p.now {",
		},
		{
			Name: "a pass goes on when its window has closed", File: "../../drain/evict.go", Run: "^TestWindowClosesInTheMiddleOfADrain$",
			Old: "if ctx.Err() == nil && p.d.o.Now().Before(until) {", New: "if ctx.Err() == nil {",
		},
		{
			Name: "nodes that are draining are not counted", File: "../../drain/admit.go", Run: "^TestNoMoreNodesAtOnceThanAllowed$",
			Old: "case active+len(chosen) >= slots:", New: "case len(chosen) >= slots:",
		},
		{
			Name: "a hook that declines is waited for", File: "../../drain/plan_hook.go", Run: "^TestPodsAnswerTheirHooks$",
			Old: "case state.Progress == HookDeclined:", New: "case false:",
		},
		{
			Name: "a group does not wait for the one before", File: "../../drain/admit.go", Run: "^TestSecondGroupStartsAfterTheLastNodeOfTheFirst$",
			Old: "case m.group > group:", New: "case false:",
		},
		{
			Name: "a failed node is skipped in any case", File: "../../drain/admit.go", Run: "^TestFailedNodeStopsTheGroupAfterItOrIsSkipped$",
			Old: "case failed != nil:", New: "case failed != nil && skipFailed:",
		},
		{
			Name: "everybody tries an overloaded server", File: "../../drain/scheduler.go", Run: "^TestOverloadedServerIsAskedLessByTheWholeFleet$",
			Old: "if s.server.steps > 0 && len(s.flying) > 0 {", New: "if false {",
		},
	})
}
