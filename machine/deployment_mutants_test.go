// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The simulation of rollouts catches deployments and sets that are broken in any of these ways.
func TestRolloutMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "what others can make is not counted", File: "deployment_sets.go", Run: "TestRollouts", Old: "\tif g.held {\n\t\treturn g.total", New: "\tif true {\n\t\treturn g.alive"},
		{Name: "the new set grows before old ones are held", File: "deployment_sets.go", Run: "TestRolloutSteps", Old: "return g != p.current && !g.held })", New: "return false })"},
		{Name: "one more than the surge", File: "deployment_scale.go", Run: "TestRollouts", Old: "p.limit, p.floor = replicas+surge,", New: "p.limit, p.floor = replicas+surge+1,"},
		{Name: "one more may be missing", File: "deployment_scale.go", Run: "TestRollouts", Old: "max(0, replicas-missing)\n", New: "max(0, replicas-missing-1)\n"},
		{Name: "what goes already is counted as working", File: "deployment_scale.go", Run: "TestRolloutSteps", Old: "\t\t\tp.working -= one(s.works())\n", New: "\t\t\t_ = s\n"},
		{Name: "what is taken is not counted", File: "deployment_scale.go", Run: "TestRolloutSteps", Old: "\t\tif next.loses() {\n\t\t\tp.working--\n", New: "\t\tif next.loses() {\n\t\t\tp.working -= 0\n"},
		{Name: "the floor is not looked at", File: "deployment_scale.go", Run: "TestRolloutSteps", Old: "if s.loses() && p.floor > 0 && p.working <= p.floor {", New: "if s.loses() && p.working < -99 {"},
		{Name: "moved machines work", File: "set_standing.go", Run: "TestRollouts", Old: "return s.available && !s.unsettled", New: "return s.available"},
		{Name: "moves cost nothing", File: "deployment_move.go", Run: "TestRollouts", Old: "\tp.working--\n\treturn \"\"", New: "\treturn \"\""},
		{Name: "no room for what is moved", File: "deployment_move.go", Run: "TestRollouts", Old: "c.held && c.was.Spec.Replicas >= need", New: "true"},
		{Name: "the set makes machines while others move to it", File: "deployment_move.go", Run: "TestRollouts", Old: "\t\ts.Annotations[NoCreateAnnotation] = \"receiving\"\n", New: "\t\tdelete(s.Annotations, NoCreateAnnotation)\n"},
		{Name: "reservations of sets are not counted", File: "deployment_sets.go", Run: "TestRolloutSteps", Old: "\t\tg.total += one(!p.seen[r.Name])\n", New: "\t\t_ = r\n"},
		{Name: "sets reserve without counting what goes", File: "set_decide.go", Run: "TestRollouts", Old: "\tp.total++\n", New: "\tp.total += one(m.Deleted.IsZero())\n"},
		{Name: "sets act on caches", File: "set_decide.go", Run: "TestRollouts", Old: "if !v.Live && (d.acts()", New: "if false && (d.acts()"},
		{Name: "deployments act on caches", File: "deployment_decide.go", Run: "TestRollouts", Old: "if !v.Live && (d.acts()", New: "if false && (d.acts()"},
		{Name: "a target that was not reached stays", File: "deployment_scale.go", Run: "TestRollouts", Old: "p.marked(), min(has, max(room, p.current.total))", New: "p.marked(), has"},
		{Name: "a machine that works is no loss", File: "set_standing.go", Run: "TestRollouts", Old: "return s.available || !s.known", New: "return !s.known"},
		{Name: "nothing is moved", File: "deployment_move.go", Run: "TestRollouts", Old: "\t\tp.d.Moves = p.moves\n", New: ""},
		{Name: "old machines that don't work go all at once", File: "deployment_scale.go", Run: "TestRolloutSteps", Old: "if g != p.current && p.floor > 0 && left <= p.floor {", New: "if false {"},
		{Name: "nothing is known, and it goes", File: "set_order.go", Run: "TestRolloutSteps", Old: "case !s.known && r == rankWorking && !all:", New: "case !s.known && r < 0 && !all:"},
		{Name: "paused deployments go on", File: "deployment_decide.go", Run: "TestRolloutSteps", Old: "\tcase d.Spec.Paused:\n\t\treturn \"paused by spec.paused\"\n", New: ""},
		{Name: "skew stops nothing", File: "deployment_scale.go", Run: "TestRolloutSteps", Old: "return p.Skew == \"\" && p.Dep", New: "return p.Dep"},
		{Name: "refused machines are replaced", File: "deployment_move.go", Run: "TestMovesInPlace", Old: "plan.Method == provider.Replace && policy == InPlaceOnly:", New: "false:"},
		{Name: "a move changes the owner alone", File: "deployment_move.go", Run: "TestMoveIsOneWrite", Old: "next.Spec = to.Spec.Template.Spec.clone()", New: "next.Spec = m.Spec.clone()"},
		{Name: "a move loses what belongs to the machine", File: "deployment_move.go", Run: "TestMoveIsOneWrite", Old: "next.Spec.ProviderID, next.Spec.Adopt =", New: "_, _ ="},
		{Name: "revisions stay as they were", File: "deployment_sets.go", Run: "TestRollback", Old: "p.frozen || revisionOf(p.current.was) > newest:", New: "p.frozen || newest >= 0:"},
		{Name: "sets of others are used", File: "deployment_sets.go", Run: "TestNameCollision", Old: "name == \"\" || p.taken[name]; n++ {", New: "name == \"\"; n++ {"},
		{Name: "sets with reservations are deleted", File: "deployment_sets.go", Run: "TestHistory", Old: "g == p.current || g.total > 0 ||", New: "g == p.current || g.alive > 0 ||"},
		{Name: "another rule of names starts a rollout", File: "deployment_decide.go", Run: "TestReplicasAreNoRollout", Old: "s.set.Spec.Template.digest() == want &&", New: "s.set.Spec.Template.digest() == want && s.set.Labels[HashLabel] == p.Deployment.Spec.Template.Hash() &&"},
		{Name: "a stockout is a rollout that stands still", File: "deployment_status.go", Run: "TestStockoutIsData", Old: "\t\tp.s.Failure = &f\n", New: "\t\t_ = &f\n"},
	})
}
