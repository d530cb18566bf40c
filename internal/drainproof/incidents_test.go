// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "a drain that finished before a crash is not believed",
			Package: "../../drain",
			Func:    "(*pass).drain",
			Replace: "p.begun() && !mine.Drained.IsZero()",
			With:    "false",
			Run:     "^TestProcessesThatDieAtTheirFirstWriteGetThere$",
		},
	})
}
