// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "a Node is deleted whatever its UID is",
			Func:    "(*nodeStore).Remove",
			Replace: "&uid",
			With:    "nil",
			Run:     "TestNodesThatNoWatch",
		},
		{
			Why:     "a machine status overwrites a newer version",
			Func:    "statusPatch",
			Replace: `"resourceVersion"`,
			With:    `"x"`,
			Run:     "TestStatusKeeps",
		},
	})
}
