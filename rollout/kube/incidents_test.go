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
			Why:     "a shadow is written over any version",
			Func:    "(*Shadows).merge",
			Replace: `metadata["resourceVersion"], metadata["uid"] = read.ResourceVersion, string(read.UID)`,
			Run:     "TestShadowWritesAreSwaps",
		},
		{
			Why:     "a shadow that was granted meanwhile is deleted",
			Func:    "(*Shadows).delete",
			Replace: "metav1.Preconditions{UID: &read.UID, ResourceVersion: &read.ResourceVersion}",
			With:    "metav1.Preconditions{UID: &read.UID}",
			Run:     "TestDelete$",
		},
		{
			Why:     "the ledger is stored over any version",
			Func:    "(*ledgerStore).Store",
			Replace: "u.SetResourceVersion(version)",
			With:    `u.SetResourceVersion("")`,
			Run:     "TestLedgerStore$/stale-store",
		},
	})
}
