// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "the fleet page answers for any host",
			Func:    "(*Hub).guard",
			Replace: "!h.knows(r.Host)",
			With:    "false",
			Run:     "TestHostIsChecked",
		},
	})
}
