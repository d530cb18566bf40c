// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// R-RO-25, R-RO-26, R-RO-29: each way to break the checks, the gates of stages, the memory of a planner, and the differences of a history is noticed.
func TestCheckMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "checks hold nothing back", File: "check.go", Run: "TestChecksEnforce", Old: "if f.Mode == Enforce {", New: "if f.Mode == \"\" {"},
		{Name: "warnings hold back", File: "check.go", Run: "TestChecksEnforce", Old: "if f.Mode == Enforce {", New: "if f.Mode != \"\" {"},
		{Name: "the quorum is kept though it is a warning", File: "admit.go", Run: "TestChecksEnforce|TestFindings", Old: "p.policy.quorumMode() == Enforce", New: "p.policy.quorumMode() != \"\""},
		{Name: "who is at its turn is not available", File: "check.go", Run: "TestNodeAtItsTurn", Old: "if m.class == flying || m.node.Away == \"\" &&", New: "if m.node.Away == \"\" &&"},
		{Name: "findings stay when all had their turn", File: "check.go", Run: "TestFindings", Old: "if left == 0 || up", New: "if left < 0 || up"},
		{Name: "findings are not said", File: "decide.go", Run: "TestChecksEnforce", Old: "	for _, f := range p.findings() {\n", New: "	for _, f := range p.findings()[:0] {\n"},
		{Name: "a planner goes on with old members", File: "planner.go", Run: "TestPlannerRemembers|TestRandomRollouts",
			Old: "	*old = (*old)[:n]\n	clear(*old)\n", New: "	*old = (*old)[:n]\n"},
		{Name: "a planner goes on with old keys", File: "planner.go", Run: "TestPlannerRemembers|TestRandomRollouts",
			Old: "		*old = make(map[K]V, n)\n	}\n	clear(*old)\n", New: "		*old = make(map[K]V, n)\n	}\n"},
		{Name: "a name that comes twice takes the other's place", File: "planner.go", Run: "TestPlannerSorts",
			Old: "if !known || members[at].node != nil {", New: "if !known {"},
		{Name: "names are learned unsorted", File: "plan.go", Run: "TestPlannerSorts", Old: "	slices.SortFunc(p.nodes, compareNames)\n	p.mem.names.learn(p.nodes)\n",
			New: "	p.mem.names.learn(p.nodes)\n	slices.SortFunc(p.nodes, compareNames)\n"},
		{Name: "a later group comes first", File: "grouper.go", Run: "TestGrouper", Old: "		if i >= before {\n			return before\n		}\n", New: ""},
		{Name: "selectors without values are not asked", File: "grouper.go", Run: "TestGrouper", Old: "	first = g.match(g.rest, first, n.Labels)\n", New: ""},
		{Name: "a value decides alone", File: "grouper.go", Run: "TestGrouper", Old: "if g.groups[i].Selector.Matches(of) {", New: "if len(of) > 0 && g.groups[i].Selector != nil {"},
		{Name: "a draft changes what it was made from", File: "protocol/draft.go", Run: "TestRandomRollouts", Old: "	if !d.own {\n", New: "	if !d.own && d.Epoch < 0 {\n"},
		{Name: "the gates of stages hold back their own nodes", File: "stage.go", Run: "TestGatesOfAStage", Old: "return !v.ForStages ||", New: "return !v.ForStages || stage == noStage ||"},
		{Name: "a stage that names a gate takes it from the fleet", File: "stage.go", Run: "TestGateOfTheFleet",
			Old: "return !v.ForStages ||", New: "return !v.ForStages && !(stage == noStage && slices.Contains(p.stages[0].Gates, v.From)) ||"},
		{Name: "a gate that is not there allows", File: "stage.go", Run: "TestGatesOfAStage", Old: "	for _, name := range p.stages[stage].Gates {\n", New: "	for _, name := range p.stages[stage].Gates[:0] {\n"},
		{Name: "fields that were added are no change", File: "diff.go", Run: "TestDiff", Old: "	default:\n		d.changes = append(d.changes, Change{Path: path, After: written(is)})\n", New: "	default:\n"},
		{Name: "large numbers are rounded", File: "diff.go", Run: "TestDiff", Old: "	decoder.UseNumber()", New: "	_ = decoder.UseNumber"},
		{Name: "a node goes to the last one that selects it", File: "owners.go", Run: "TestOwners", Old: "!taken {\n		o.of[uid]", New: "!taken || true {\n		o.of[uid]"},
		{Name: "what was begun goes to the owner", File: "owners.go", Run: "TestOwners", Old: "slot == nil || slot.Rollout != rollout", New: "slot == nil || slot.Rollout != \"\""},
		{Name: "nodes of others have their turn", File: "explain.go", Run: "TestDecisionsYield", Old: " || r == ReasonOther", New: ""},
		{Name: "of documents the first counts", File: "diff.go", Run: "TestDiff", Old: "	if strings.Contains(\"\\n\"+text, \"\\n---\") {", New: "	if strings.Contains(text, \"?---?\") {"},
	})
}
