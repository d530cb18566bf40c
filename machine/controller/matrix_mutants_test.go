// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// R-MA-02: each way to break what a crash must not break, of decommissioning, adoption and pools, is noticed.
func TestMutantsOfTheMatrix(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "reservations are not counted", File: "../set_decide.go", Run: "TestKilledInEachLifeOfAPool", Old: "p.total += len(p.s.Reserved)", New: "_ = p.total"},
		{Name: "a decommissioning is not stored before it begins", File: "../release.go", Run: "TestDecommissionIsTakenBack",
			Old: "return p.store(a), true\n	case p.overridden(\"leave\"):", New: "return Decision{Status: p.s, Action: a}, true\n	case p.overridden(\"leave\"):"},
		{Name: "who has left may stay", File: "../release.go", Run: "TestDecommissionIsTakenBack",
			Old: "return (unwanted || reverted) && !r.Begun", New: "return (unwanted || reverted) && !r.Left"},
		{Name: "disks are given up before they are adopted", File: "../decide.go", Run: "TestKilledInEachLife/decommissioned_and_back",
			Old: "a.Kind, a.Retained.Token = Adopt, from", New: "a.Kind, a.Retained.Token = Adopt, from\n		p.s.forget(from)"},
		{Name: "an instance that was left Pending is only looked at", File: "../decide.go", Run: "TestPendingGoesOn",
			Old: "if !p.Fresh && !resume && p.Can.Get {", New: "if !p.Fresh && (!resume || resume) && p.Can.Get {"},
		{Name: "a set believes its cache", File: "../set_decide.go", Run: "TestKilledInEachLifeOfAPool", Old: "if !v.Live && (d.acts()", New: "if false && (d.acts()"},
		{Name: "machines that go already are counted as if they stayed", File: "../set_decide.go", Run: "TestKilledInEachLifeOfAPool",
			Old: "	if !s.deleting() {\n		p.alive++", New: "	if s.Machine != nil {\n		p.alive++"},
		{Name: "an old set goes on while the new one begins", File: "../deployment_sets.go", Run: "TestKilledInEachLifeOfAPool",
			Old: "if !g.held {\n			g.change(", New: "if false {\n			g.change("},
		{Name: "disks that a machine names expire", File: "survey.go", Run: "TestKilledInEachLife/adopted", Old: "provider.TokenOf(m.Spec.ProviderID), m.Spec.Adopt}", New: "provider.TokenOf(m.Spec.ProviderID)}"},
		{Name: "retained disks expire at once", File: "../learn.go", Run: "TestKilledInEachLife/retained", Old: "kept.Until = l.now.Add(d)", New: "kept.Until = l.now.Add(d - d)"},
		{Name: "a backup is made after the update", File: "../update.go", Run: "TestKilledInEachLife/replaced", Old: "case p.turns() && !u.BackedUp && !u.Sent:", New: "case p.turns() && !u.BackedUp && u.Done:"},
		{Name: "a member stays when its machine is stopped", File: "../release.go", Run: "TestKilledInEachLife/replaced", Old: "	if !r.Left {\n		if d, waits := p.leave(r)", New: "	if r.Begun {\n		if d, waits := p.leave(r)"},
	})
}
