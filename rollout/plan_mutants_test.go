// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a plan that is broken in any of these ways.
func TestPlanMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "the caps of others do not bind", File: "caps.go", Run: "TestCapsBindAtOnce",
			Old: "slices.Concat(own, p.snapshot.OtherCaps)", New: "slices.Clone(own)"},
		{Name: "what is admitted is not spent", File: "admit.go", Run: "TestCapsBindAtOnce|TestSerialNodes", Old: "\t\tu.used++\n", New: ""},
		{Name: "nodes that are away use no capacity", File: "caps.go", Run: "TestNodeThatIsAway|TestRandomRollouts",
			Old: "\t\tl.absent = append(", New: "\t\tif l != nil {\n\t\t\tcontinue\n\t\t}\n\t\tl.absent = append("},
		{Name: "a list of caps needs no total", File: "caps.go", Run: "TestCapsWithKeys", Old: "if !p.policy.bounded() {", New: "if len(p.policy.Caps) == 0 {"},
		{Name: "a total is no total", File: "caps.go", Run: "TestCapsWithKeys|TestPercentages", Old: "return c.Key == \"\" })", New: "return c.Key == \"\" && c.Scope != Total })"},
		{Name: "percentages are rounded up", File: "caps.go", Run: "TestPercentages", Old: "n*percent/100)", New: "(n*percent+99)/100)"},
		{Name: "the caps of a stage do not bind", File: "caps.go", Run: "TestCapsOfTheStage", Old: "if stage < len(p.stages) {", New: "if stage < 0 {"},
		{Name: "a majority is half", File: "admit.go", Run: "TestSerialNodes", Old: "after < a.sizes.serial/2+1 {", New: "after < a.sizes.serial/2 {"},
		{Name: "quorum counts nodes that are away", File: "caps.go", Run: "TestSerialNodes",
			Old: "m.serial && m.node.Away == \"\" &&", New: "m.serial &&"},
		{Name: "unknown health allows", File: "classify.go", Run: "TestNodeThatIsSick",
			Old: "return deferred, p.unknownHealth()", New: "return waiting, nil"},
		{Name: "unknown gates allow", File: "stage.go", Run: "TestGatesHoldBack|TestStagesArePassed", Old: "v.Answer == Allow", New: "v.Answer != Deny"},
		{Name: "a stage needs no success", File: "stage.go", Run: "TestStagesAndNodes|TestFailing|TestRandomRollouts|TestJoined",
			Old: "s.done+s.settled >= s.need && (s.done > 0 || s.total == 0)", New: "s.settled >= 0"},
		{Name: "no soak", File: "stage.go", Run: "TestStagesArePassed", Old: "end.After(p.now)", New: "end.After(end)"},
		{Name: "trouble does not begin the soak anew", File: "stage.go", Run: "TestStagesArePassed",
			Old: "			p.progress.SoakSince = time.Time{} // what", New: "			// what"},
		{Name: "a failing revision walks on", File: "admit.go", Run: "TestFailingRevision", Old: "if a.failing(r) {", New: "if false {"},
		{Name: "retries go before fresh nodes", File: "order.go", Run: "TestRetriesQueue",
			Old: "[]bool{m.retried, m.node.Own", New: "[]bool{!m.retried, m.node.Own"},
		{Name: "retries without end", File: "classify.go", Run: "TestFailingRevision", Old: "case e.Attempts >= p.attempts():", New: "case false:"},
		{Name: "a node counts at each retry", File: "outcome_list.go", Run: "TestFailingRevision",
			Old: "if i := p.outcomeOf(uid); i >= 0 {", New: "if i := p.outcomeOf(\"?\"); i >= 0 {"},
		{Name: "a freeze leaves the ledger open", File: "verbs.go", Run: "TestDetectorCloses|TestFailingRevision",
			Old: "if f := p.progress.FrozenBy; f != \"\" {", New: "if f := p.progress.FrozenBy; f == \"?\" {"},
		{Name: "a stale controller opens what it does not know", File: "verbs.go", Run: "TestStaleController",
			Old: "	for _, request := range p.progress.Lifted {\n", New: "	for _, request := range []string{\"abort-1\"} {\n"},
		{Name: "an abort leaves grants open", File: "steer.go", Run: "TestAbortAtEvery", Old: "	if halt != nil {\n		return halt\n	}\n	if m.group", New: "	if m.group"},
		{Name: "an abort lets drains go on", File: "steer.go", Run: "TestAbortAtEvery",
			Old: "halt != nil && (halt.Reason == ReasonAborted || halt.Reason == ReasonFrozen)", New: "false"},
		{Name: "a closed window is a closed door for nobody", File: "steer.go", Run: "TestWindowsHoldBack", Old: "if !open {", New: "if !open && false {"},
		{Name: "whatever fits", File: "window.go", Run: "TestWindowsHoldBack", Old: "p.now.Add(p.cycle).After(until)", New: "p.now.After(until)"},
		{Name: "the second time of an hour that comes twice", File: "window.go", Run: "TestWindows", Old: "first.Before(start)", New: "first.Before(first)"},
		{Name: "broken nodes do not come first", File: "admit.go", Run: "TestSuperseding", Old: "\tcase a.rescue != nil:", New: "\tcase false:"},
		{Name: "work is not waited for", File: "inflight.go", Run: "TestWorkThatDoesNot", Old: "n.Away == \"\" && n.Health.Answer == Allow", New: "n != nil"},
		{Name: "a critical node may fail", File: "outcome.go", Run: "TestCritical", Old: "if counts && first && e.Critical {", New: "if false {"},
		{Name: "the input is written to", File: "plan.go", Run: "TestRandomRollouts", Old: "p.progress.Nodes = maps.Clone(p.progress.Nodes)", New: "_ = maps.Clone(p.progress.Nodes)"},
		{Name: "the order of the cache decides", File: "plan.go", Run: "TestRandomRollouts|TestDefaultIs", Old: "	slices.SortFunc(p.nodes, compareNames)\n", New: "	_ = compareNames\n"},
		{Name: "a simulated attempt takes no time", File: "simulate_node.go", Run: "TestSimulationIsWhatHappens", Old: "w.now.Add(w.cycle))", New: "w.now)"},
		{Name: "a free slot ends no simulated stage", File: "simulate_world.go", Run: "TestSimulationIsWhatHappens",
			Old: "return again || released && !busy, nil", New: "return again || released && busy && err != nil, nil"},
		{Name: "simulated approvals come by themselves", File: "simulate_world.go", Run: "TestSimulationSaysWhatHoldsUp",
			Old: " || w.approve == 0 {", New: " {"},
		{Name: "whoever waits is told to acknowledge", File: "explain.go", Run: "TestWhyInAFleet",
			Old: "(do != Acknowledge || d.acknowledgeable(n, say.others))", New: "(do != \"\" || d.acknowledgeable(n, say.others))"},
		{Name: "who runs its revision gets it again", File: "steer.go", Run: "TestChaos", Old: "	if f.slot.State == \"\" && p.targets", New: "	if f.slot.State == \"?\" && p.targets"},
		{Name: "what has joined gets what is on trial", File: "classify.go", Run: "TestJoinedNode", Old: "if m.joined && a.completed", New: "if false && a.completed"},
	})
}

// The suite catches a plan whose freezes, or stages that are put in and taken away, go wrong in any of these ways.
func TestFreezeAndStageMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a freeze that is found again closes again", File: "verbs.go", Run: "TestFreezeThatIs",
			Old: "p.isFreeze(c.Request) && c.Request != p.progress.Stopped", New: "c.Request == by"},
		{Name: "a freeze goes on with a closure that was lifted", File: "verbs.go", Run: "TestFreezeThatIs",
			Old: " && !slices.Contains(p.progress.Lifted, c.Request) {", New: " {"},
		{Name: "a freeze goes on with what people have closed", File: "verbs.go", Run: "TestFreezeThatIs",
			Old: "	return err == nil\n", New: "	return err == nil || true\n"},
		{Name: "a freeze goes on with that of another revision", File: "verbs.go", Run: "TestFreezeThatIs",
			Old: "i < 0 || !strings.HasSuffix(request[:i], \"/\"+p.policy.Target.Name)", New: "i < 0"},
		{Name: "stages go by their numbers", File: "stage_moves.go", Run: "TestStagesGo",
			Old: "if j := slices.Index(names, was[i]); j >= 0 {\n\t\treturn j", New: "if i < len(names) {\n\t\treturn i"},
		{Name: "a stage goes on with the soak of another", File: "stage_moves.go", Run: "TestStagesGo", Old: "if !stays {", New: "if len(names) == 0 {"},
		{Name: "a promotion is one of whatever comes next", File: "stage_moves.go", Run: "TestPromotedStage",
			Old: "promoted := stays && p.progress", New: "promoted := p.progress"},
	})
}
