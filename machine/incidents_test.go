// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "a set creates machines because of a cache",
			Func:    "DecideSet",
			Replace: "!v.Live",
			With:    "false",
			Run:     "TestSetNeedsLive",
		},
		{
			Why:     "a machine name is used again",
			Func:    "(*setPass).reserve",
			Replace: "p.s.Serial++",
			With:    "p.s.Serial = int64(len(p.names)) + 1",
			Run:     "TestSetReservesFirst",
		},
		{
			Why:     "the control plane is scaled in",
			Func:    "keeps",
			Replace: "!s.Spec.Decommission",
			With:    "false",
			Run:     "TestScaleInKeeps",
		},
		{
			Why:     "a mass failure does not stop remediation",
			Func:    "(*healthPass).halted",
			Replace: "p.s.Unhealthy > most",
			With:    "false",
			Run:     "TestShortCircuit",
		},
		{
			Why:     "remediation needs no budget",
			Func:    "(*healthPass).charge",
			Replace: "p.Budget <= 0",
			With:    "p.Budget < 0",
			Run:     "TestRemediesHeldBack",
		},
		{
			Why:     "a control plane without quorum loses a machine",
			Func:    "(*gates).remain",
			Replace: "all.healthy < all.quorum()",
			With:    "false",
			Run:     "TestEveryEndOfAQuorum",
		},
		{
			Why:     "half of the members are a quorum",
			Func:    "voters.quorum",
			Replace: "v.n/2 + 1",
			With:    "(v.n + 1) / 2",
			Run:     "TestGates",
		},
		{
			Why:     "a deployment exceeds its surge",
			Func:    "(*deploymentPass).budget",
			Replace: "replicas+surge",
			With:    "replicas+surge+1",
			Run:     "TestRollouts",
		},
	})
}
