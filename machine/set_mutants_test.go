// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch sets that are broken in any of these ways.
func TestSetMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a cache is acted on", File: "set_decide.go", Run: "TestSetNeedsLive",
			Old: "if !v.Live && (d.acts()", New: "if false && (d.acts()"},
		{Name: "drifted machines are made again", File: "set_decide.go", Run: "TestSetCeiling",
			Old: "\tp.total++\n", New: "\tif !selected {\n\t\tp.total--\n\t}\n\tp.total++\n"},
		{Name: "what is selected does not count", File: "set_decide.go", Run: "TestSetCeiling",
			Old: "\tif !owned && !selected {", New: "\tif !owned && (!selected || m.Owner.UID != \"\") {"},
		{Name: "deleted machines don't count", File: "set_decide.go", Run: "TestSetCeiling",
			Old: "\tp.total++\n", New: "\tp.total += one(m.Deleted.IsZero())\n"},
		{Name: "reservations don't count", File: "set_decide.go", Run: "TestSetCeiling",
			Old: "p.total += len(p.s.Reserved)", New: "p.total += len(p.s.Reserved) / 9"},
		{Name: "reservations are kept when they are seen", File: "set_decide.go", Run: "TestSetReservesFirst",
			Old: "func(r Reservation) bool { return p.names[r.Name] })\n\tfor", New: "func(r Reservation) bool { return p.names[r.Name] && r.Name == \"\" })\n\tfor"},
		{Name: "names are used again", File: "set_decide.go", Run: "TestSetReservesFirst",
			Old: "\t\tp.s.Serial++\n", New: "\t\tp.s.Serial = int64(len(p.names)) + 1\n"},
		{Name: "a name of a stranger is taken", File: "set_decide.go", Run: "TestSetNames",
			Old: "for r.Name == \"\" || p.names[r.Name] {", New: "for r.Name == \"\" {"},
		{Name: "names of two sets are the same", File: "set_decide.go", Run: "TestSetNames",
			Old: "childName(p.Set.Name, 6, \"machine\", p.Set.UID,", New: "childName(p.Set.Name, 6, \"machine\", p.Set.Name,"},
		{Name: "long names", File: "set_names.go", Run: "TestSetNames", Old: "len(base) > room {", New: "len(base) > 99+room {"},
		{Name: "a restored set goes on", File: "set_decide.go", Run: "TestSetHoldsBack", Old: "case (p.Restored || len(p.lost) > 0)", New: "case len(p.lost) > 0"},
		{Name: "machines of the set before are made again", File: "set_decide.go", Run: "TestSetAdopts",
			Old: "case (p.Restored || len(p.lost) > 0)", New: "case p.Restored"},
		{Name: "it deletes while it adopts", File: "set_decide.go", Run: "TestSetAdopts", Old: "d := p.adopt(); len(d.Adopt) > 0 {", New: "d := p.adopt(); len(d.Adopt) > 99 {"},
		{Name: "dying machines are adopted", File: "set_decide.go", Run: "TestSetAdopts", Old: "\tcase s.deleting():\n", New: ""},
		{Name: "deleting machines are deleted beside others", File: "set_decide.go", Run: "TestDeletingCountsFirst",
			Old: "n := p.alive - p.Set.Spec.Replicas;", New: "n := len(p.owned) - p.Set.Spec.Replicas;"},
		{Name: "a paused set", File: "set_decide.go", Run: "TestSetHoldsBack", Old: "\tcase spec.Paused:\n\t\treturn \"paused by spec.paused\"\n", New: ""},
		{Name: "an empty selector selects", File: "set_decide.go", Run: "TestSetHoldsBack", Old: "return len(selector) > 0", New: "return true"},
		{Name: "no bound of machines on their way", File: "set_decide.go", Run: "TestSetProvisioning", Old: "limit - p.joining - len", New: "limit - len"},
		{Name: "an old set creates", File: "set_decide.go", Run: "TestSetHoldsBack", Old: "\tcase held:\n", New: "\tcase held && len(p.owned) > 99:\n"},
		{Name: "an old set keeps its reservations", File: "set_decide.go", Run: "TestSetGivesUp",
			Old: "\tcase held:\n\t\tp.s.Reserved = nil\n", New: "\tcase held:\n"},
		{Name: "a full group is asked for more", File: "set_decide.go", Run: "TestSetHoldsBack", Old: "case p.Refused != nil:", New: "case p.Refused != nil && p.total > 99:"},
		{Name: "the control plane is scaled in", File: "set_order.go", Run: "TestScaleInKeeps", Old: "&& !s.Spec.Decommission:", New: "&& false:"},
		{Name: "quarantine is no reason", File: "set_order.go", Run: "TestScaleInKeeps", Old: "\tcase quarantined:\n", New: "\tcase quarantined && s.Node != nil:\n"},
		{Name: "unknown machines go", File: "set_order.go", Run: "TestScaleInBlind", Old: "case !s.known && r == rankWorking && !all:", New: "case !s.known && r < 0 && !all:"},
		{Name: "marks are not heeded", File: "set_order.go", Run: "TestScaleInOrder", Old: "\tcase marked:\n", New: "\tcase marked && s.Node == nil:\n"},
		{Name: "healthy machines go before unhealthy ones", File: "set_order.go", Run: "TestScaleInOrder", Old: "cmp.Compare(a.rank, b.rank),", New: "cmp.Compare(b.rank, a.rank),"},
		{Name: "dear ones go first", File: "set_order.go", Run: "TestScaleInOrder", Old: "cmp.Compare(p.cost[a.Key], p.cost[b.Key]),", New: ""},
		{Name: "no order of ties", File: "set_order.go", Run: "TestScaleInOrder", Old: "cmp.Compare(a.Name, b.Name),", New: "cmp.Compare(b.Name, a.Name),"},
		{Name: "what is to be disturbed works", File: "set_order.go", Run: "TestRollouts", Old: "case s.known && !s.works():", New: "case s.known && !s.ready:"},
		{Name: "heirs are forgotten", File: "set_decide.go", Run: "TestHeirs", Old: "r.Heir, p.s.Heirs = p.s.Heirs[0], p.s.Heirs[1:]", New: "p.s.Heirs = p.s.Heirs[1:]"},
		{Name: "machines share their template", File: "set_names.go", Run: "TestSetMachineIsACopy", Old: "\ts = s.clone()\n", New: ""},
		{Name: "a disturbed machine is available", File: "set_standing.go", Run: "TestSetStandings", Old: "|| disturbed(m) ||", New: "||"},
		{Name: "ready is available at once", File: "set_standing.go", Run: "TestSetStatus", Old: "since.Add(minReady).Sub(now)", New: "since.Sub(now)"},
		{Name: "unreferenced machines of sets", File: "set_report.go", Run: "TestUnreferenced", Old: "m.Owner == (Owner{}) &&", New: ""},
	})
}

// The tests catch health checks that are broken in any of these ways.
func TestHealthMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "unknown is unhealthy", File: "health_diagnose.go", Run: "TestDiagnosis", Old: "\tif !p.NodesKnown {\n\t\treturn finding{}\n\t}\n", New: ""},
		{Name: "what can't be made is unhealthy", File: "health_diagnose.go", Run: "TestDiagnosis",
			Old: "\tcase m.Node == nil && m.Instance == nil && m.Failure != nil:\n\t\treturn finding{}\n", New: ""},
		{Name: "at once", File: "health_diagnose.go", Run: "TestDiagnosis", Old: "left := t.Add(limit).Sub(p.Now); left > 0 {", New: "left := t.Sub(p.Now); left > 0 {"},
		{Name: "what is disturbed is mended", File: "health_diagnose.go", Run: "TestDiagnosis", Old: " || disturbed(m) {", New: " {"},
		{Name: "no short circuit", File: "health_decide.go", Run: "TestShortCircuit", Old: "case p.s.Unhealthy > most:", New: "case p.s.Unhealthy > most+99:"},
		{Name: "the remedy goes on while paused", File: "health_decide.go", Run: "TestShortCircuit", Old: "\tif p.s.Message == \"\" {\n\t\tp.issue(m, a)\n\t}\n", New: "\tp.issue(m, a)\n"},
		{Name: "no budget", File: "health_decide.go", Run: "TestRemediesHeldBack", Old: "case p.Budget <= 0:", New: "case p.Budget < 0:"},
		{Name: "the budget is not shared", File: "health_decide.go", Run: "TestOneBudget", Old: "\tp.Budget--\n", New: ""},
		{Name: "no time to help", File: "health_decide.go", Run: "TestLadder", Old: "\tif left <= 0 {\n\t\treturn false\n\t}\n\tp.look(left)\n\tif p.s", New: "\tif left <= 99*time.Hour {\n\t\treturn false\n\t}\n\tp.look(left)\n\tif p.s"},
		{Name: "tries without end", File: "health_diagnose.go", Run: "TestLadder", Old: "if next.Try > max(rung.Tries, 1) {", New: "if next.Try > 99 {"},
		{Name: "another ID in each pass", File: "health_diagnose.go", Run: "TestLadder", Old: "ID: a.ID(), Loan", New: "ID: a.ID() + p.Now.String(), Loan"},
		{Name: "the same ID for each try", File: "health.go", Run: "TestLadder", Old: "a.UID, a.Since.Unix(), a.Rung, a.Try)", New: "a.UID, 0, a.Rung, 0)"},
		{Name: "helped at once", File: "health_decide.go", Run: "TestCooldown", Old: "\tif left <= 0 {\n\t\tp.s.Attempts = slices.Delete", New: "\tif left <= 99*time.Hour {\n\t\tp.s.Attempts = slices.Delete"},
		{Name: "not seen is not healthy", File: "health_decide.go", Run: "TestCooldown", Old: "case i < 0 || m.state == unknown:", New: "case i < 0:"},
		{Name: "no lineage", File: "health_diagnose.go", Run: "TestBadImage", Old: "case p.lineage(m) >= most:", New: "case p.lineage(m) >= most+99:"},
		{Name: "a machine that never joined is proven by its age", File: "health_diagnose.go", Run: "TestRemediesHeldBack",
			Old: "n < 0 || m.Node != nil && p.brokenAt(m).Sub(m.Created)", New: "n < 0 || p.Now.Sub(m.Created)"},
		{Name: "the control plane is replaced", File: "health_diagnose.go", Run: "TestRemediesHeldBack", Old: "case Protected(m.Spec.Roles):", New: "case Protected(nil):"},
		{Name: "what nobody makes again is replaced", File: "health_diagnose.go", Run: "TestRemediesHeldBack", Old: "case m.Owner.UID == \"\":", New: "case m.UID == \"\":"},
		{Name: "attempts are kept for ever", File: "health_decide.go", Run: "TestAttemptsAreForgotten", Old: "return !there[a.UID] || left", New: "return left"},
		{Name: "who is not waited for has a slot", File: "health_decide.go", Run: "TestDisruptionsAreForgotten", Old: "|| left[a.UID] && a.Loan() != \"\"", New: ""},
		{Name: "what is deleted has no slot", File: "health_decide.go", Run: "TestDisruptionsAreForgotten", Old: "there[m.UID] = !m.Deleted.IsZero()", New: "there[m.UID] = false"},
		{Name: "the next rung takes another slot", File: "health_decide.go", Run: "TestOneBudgetForAll", Old: "\tcase held:\n", New: "\tcase held && p.Budget > 99:\n"},
		{Name: "a refusal is not heard", File: "health_decide.go", Run: "TestOneBudgetForAll", Old: "case refused != \"\":", New: "case refused == \"x\":"},
		{Name: "two checks mend one machine", File: "health_decide.go", Run: "TestOneBudgetForAll", Old: "case other >= 0:", New: "case other >= 99:"},
	})
}

// The tests catch gates, differences and hashes that are broken in any of these ways.
func TestGateMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "no quorum before", File: "gate_quorum.go", Run: "TestEveryEndOfAQuorum", Old: "case all.healthy < all.quorum():", New: "case all.healthy < 0:"},
		{Name: "no quorum after", File: "gate_quorum.go", Run: "TestGates",
			Old: "case staying.healthy < staying.n && going.healthy > 0:", New: "case staying.healthy < 0:"},
		{Name: "half is enough", File: "gate_quorum.go", Run: "TestGates", Old: "return v.n/2 + 1", New: "return (v.n + 1) / 2"},
		{Name: "learners have a vote", File: "gate_quorum.go", Run: "TestGates", Old: "\t\tcase m.Learner:\n", New: ""},
		{Name: "who left already is asked again", File: "gate_quorum.go", Run: "TestGates", Old: "if going.n > 0 {", New: "if going.n > 0 || len(g.ending) > 0 && all.healthy < all.n {"},
		{Name: "who can't be asked is fine", File: "gate_quorum.go", Run: "TestGates", Old: "i >= 0 {", New: "i > 99 {"},
		{Name: "a member of nowhere", File: "gate_quorum.go", Run: "TestGates", Old: "case m.Machine == Key{} &&", New: "case m.Name == \"\" &&"},
		{Name: "one step is enough", File: "gate_check.go", Run: "TestGates", Old: "if Protected(m.Spec.Roles) && !m.Spec.Decommission {", New: "if false {"},
		{Name: "who ends anyway remains", File: "gate_check.go", Run: "TestGates", Old: "case m.Deleted.IsZero() && !m.Spec.Decommission:", New: "default:"},
		{Name: "a machine that is not there", File: "gate_check.go", Run: "TestGates", Old: "if !g.known[k] {", New: "if g.known[k] && k.Name == \"\" {"},
		{Name: "local data of others", File: "gate_check.go", Run: "TestGates", Old: "case !g.ends[v.Machine]:", New: "case v.Machine.Name == \"\":"},
		{Name: "as it is configured", File: "gate_check.go", Run: "TestGates", Old: "s = cmp.Or(g.As[gate], s);", New: "s = cmp.Or(s, g.As[gate]);"},
		{Name: "no role", File: "gate_roles.go", Run: "TestRoles", Old: "\tif !known {", New: "\tif !known && len(roles) > 0 {"},
		{Name: "any role", File: "gate_roles.go", Run: "TestRoles", Old: "\tif !known {", New: "\tif !known && len(roles) == 0 {"},
		{Name: "newer kubelets", File: "gate_skew.go", Run: "TestSkew", Old: "case k.minor > c.minor:", New: "case k.minor > c.minor+1:"},
		{Name: "older kubelets", File: "gate_skew.go", Run: "TestSkew", Old: "const maxMinors = 3", New: "const maxMinors = 4"},
		{Name: "versions by text", File: "gate_skew.go", Run: "TestSkew", Old: "case k.minor > c.minor:", New: "case kubelet > controlPlane && k.minor != c.minor:"},
		{Name: "something like a version", File: "gate_skew.go", Run: "TestSkew", Old: "!ok || len(parts) != 3", New: "ok && len(parts) == 0 || len(parts) != 3"},
		{Name: "config of a cloud is compared", File: "diff.go", Run: "TestCopies", Old: "\td.text(\"spec.bootstrap\"", New: "\td.text(\"spec.config\", dataWords(a.Config), dataWords(b.Config))\n\td.text(\"spec.bootstrap\""},
		{Name: "a field is not compared", File: "diff.go", Run: "TestDiff$", Old: "\td.text(\"spec.credentials\", a.Credentials, b.Credentials)\n", New: ""},
		{Name: "what is new is not seen", File: "diff.go", Run: "TestDiff$", Old: "if _, ok := a[k]; !ok {", New: "if _, ok := a[k]; ok && w == \"\" {"},
		{Name: "data is shown", File: "diff.go", Run: "TestDiff$", Old: "\"spec.configSource\", dataWords(a.ConfigSource), dataWords(b.ConfigSource)", New: "\"spec.configSource\", string(a.ConfigSource), string(b.ConfigSource)"},
		{Name: "another hash", File: "hash.go", Run: "TestHashNeverChanges", Old: "`json:\"bootstrap,omitempty\"`", New: "`json:\"boot,omitempty\"`"},
		{Name: "the hash is part of what is hashed", File: "hash.go", Run: "TestHashIsOfTheTemplate", Old: "\tdelete(labels, HashLabel)\n", New: ""},
		{Name: "a field is not hashed", File: "hash.go", Run: "TestHashIsOfTheTemplate", Old: "RetainFor: s.Deletion.RetainFor,", New: "RetainFor: 0,"},
	})
}

// The tests catch an edit of a Node's settings that is taken for the provider's, and the other way round.
func TestSettingsMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "settings are told by the Node's record alone", File: "node.go", Run: "TestSettingsEditedTwice",
			Old: "if p.s.ProviderDigest != providers(m.Spec.Desired) && !given", New: "if !given"},
		{Name: "what is not known is taken for settings", File: "node.go", Run: "TestSettingsEditedTwice",
			Old: "if p.s.ProviderDigest != providers(m.Spec.Desired) && !given", New: "if p.s.ProviderDigest != providers(m.Spec.Desired) && p.s.ProviderDigest != \"\" && !given"},
		{Name: "all counts as settings", File: "node.go", Run: "TestSettingsEditedTwice",
			Old: "d.Node = provider.NodeSettings{}", New: "d = provider.Desired{}"},
	})
}
