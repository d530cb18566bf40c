// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "an empty selector selects every machine",
			Func:    "(*MachineSelector).Matches",
			Replace: "!selector.Empty() && selector.Matches(labels.Set(l))",
			With:    "selector.Matches(labels.Set(l))",
			Run:     "TestSelectors",
		},
	})
}
