// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "two reservations on ssh hosts become two claims",
			Func:    "(*core).commit",
			Replace: "append(others, mine)",
			With:    "[]sight{mine}",
			Run:     "TestTwoReservationsBecomeOneClaim/0-first",
		},
	})
}
