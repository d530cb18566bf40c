// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "a dry run drains",
			Func:    "newCommand",
			Replace: "s.DryRun",
			With:    "settings.DryRunNone",
			Run:     "TestPlanIsWhatTheDrainDoes",
		},
	})
}
