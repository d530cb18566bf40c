// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "a machine that is missing from the files is deleted",
			Func:    "(*report).leaves",
			Replace: "m.Spec.Decommission && m.Owner == machine.Owner{}",
			With:    "m.Owner == machine.Owner{}",
			Run:     "TestUnreferenced|TestChanges",
		},
	})
}
