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
		{Name: "the first outcome stays", File: "outcome_list.go", Run: "TestNodeThatIsMadeAnew",
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
		{Name: "outcomes are never forgotten", File: "plan.go", Run: "TestChurnLeaves", Old: "	p.retire()\n", New: ""},
		{Name: "outcomes of nodes that are there are forgotten", File: "outcome_list.go", Run: "TestChurnLeaves", Old: "if more <= 0 || here[o.UID] || !passed", New: "if more <= 0 || !passed"},
		{Name: "all outcomes of nodes that are gone are forgotten", File: "outcome_list.go", Run: "TestChurn", Old: "len(p.nodes) - keptGone", New: "len(p.nodes)"},
		{Name: "what was accepted counts again", File: "outcome_list.go", Run: "TestChurn", Old: "			accepted--\n", New: "			accepted = 0\n"},
		{Name: "what follows counts as accepted", File: "outcome_list.go", Run: "TestChurn", Old: "			accepted--\n", New: ""},
		{Name: "before the last stage nothing is forgotten", File: "outcome_list.go", Run: "TestChurnBefore", Old: "!passed && o.Result != Succeeded {", New: "!passed {"},
		{Name: "each look at a gate is written", File: "stage.go", Run: "TestDenialDuring", Old: "p.progress.SoakSince = time.Time{} // what", New: "p.progress.SoakSince = p.now // what"},
		{Name: "who falls back keeps others from the revision", File: "stage.go", Run: "TestRelapseKeeps", Old: "o.Result != Lost && o.Result != FellBack", New: "o.Result != Lost"},
		{Name: "who was given up is waited for", File: "stage.go", Run: "TestNothingLeft", Old: "s.pending == 0 && s.settled+s.lost > 0 }", New: "s.pending == 0 && s.settled > 0 }"},
		{Name: "joiners wait for ever", File: "stage.go", Run: "TestJoiners", Old: "s.stuck() && s.eligible > 0 {", New: "s.stuck() && s.eligible < 0 {"},
		{Name: "nobody has to wait for a freeze", File: "stage.go", Run: "TestJoiners", Old: "s.stuck() && s.eligible > 0 {", New: "s.stuck() {"},
		{Name: "the fleet falls back one by one", File: "outcome_list.go", Run: "TestCostOfAFleet",
			Old: "return uids[o.UID] && !detectFailed(o.Result) })", New: "return false })"},
		{Name: "the stage does not know its outcomes", File: "outcome_list.go", Run: "TestChurn", Old: "			before--\n", New: ""},
	})
}

// R-RO-21, R-RO-28: each way to hold up a successor for ever is noticed.
func TestRescueMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a rollback waits for nodes that are gone", File: "begin.go", Run: "TestRollbackIsNot|TestSuccessorPasses",
			Old: "p.progress.Targets == nil && len(absent) > 0", New: "len(absent) > 0"},
		{Name: "a rollout begins without its nodes", File: "begin.go", Run: "TestRolloutDoesNotBegin", Old: "p.progress.Targets == nil && len(absent) > 0", New: "false"},
		{Name: "who is missing is not said", File: "check.go", Run: "TestRollbackIsNot|TestSuccessorPasses",
			Old: "if absent := p.absent(); len(absent) > 0 {", New: "if absent := p.absent(); len(absent) < 0 {"},
		{Name: "a grant that was taken back is no deferral", File: "inflight.go", Run: "TestBrokenNodeThatDies",
			Old: "if f.sh.Orders.Revoked >= f.slot.Attempt {", New: "if f.sh.Orders.Revoked < 0 {"},
		{Name: "who accepts has to rescue", File: "verbs.go", Run: "TestAcceptEnds",
			Old: "p.progress.FrozenBy, p.progress.Frozen, p.progress.Rescue = \"\", \"\", false", New: "p.progress.FrozenBy, p.progress.Frozen = \"\", \"\""},
		{Name: "a dead node is awaited", File: "rescue.go", Run: "TestBrokenNodeThatDies", Old: "e.Deferrals >= p.attempts()", New: "e.Deferrals < 0"},
		{Name: "a node that dies in its attempt is awaited", File: "rescue.go", Run: "TestBrokenNodeThatDies",
			Old: "disrupts(f.state) && p.passed(e.Since, p.within(f.state))", New: "e.Since.IsZero()"},
		{Name: "who may still recover is stranded", File: "rescue.go", Run: "TestBrokenNodeThatDiesInIts", Old: "hope || broken == 0 || broken > len(stranded)", New: "hope || broken == 0"},
		{Name: "many zones break the order", File: "order.go", Run: "TestMoreZones", Old: " || len(p.zones) > 1<<zoneBits {", New: " {"},
		{Name: "groups without number", File: "validate.go", Run: "TestMoreGroups", Old: "len(v.p.Groups) <= 1<<groupBits", New: "true"},
		{Name: "stages without number", File: "validate.go", Run: "TestMoreGroups", Old: "len(v.p.Stages) <= 1<<stageBits", New: "true"},
		{Name: "zones that are misspelt are none", File: "check.go", Run: "TestChecksEnforce", Old: "c.Scope == ByZone && c.Key != \"\" && !slices", New: "c.Scope == ByZone && c.Key == \"?\" && !slices"},
		{Name: "a zone that empties holds up the way back", File: "check.go", Run: "TestZoneThat", Old: "if p.progress.Phase == Pending {", New: "if p.now.IsZero() || true {"},
		{Name: "only the policy's zones are looked at", File: "check.go", Run: "TestChecksEnforce", Old: "range p.policy.Stages {\n		look(", New: "range p.policy.Stages[:0] {\n		look("},
	})
}
