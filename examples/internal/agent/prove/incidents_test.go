// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "a config that a prover refuses is accepted",
			Func:    "(*Program).run",
			Replace: "refused",
			With:    "accepted",
			Run:     "TestExitStatusIsTheAnswer",
		},
	})
}
