// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "a DELETE names no UID",
			Package: "../kube",
			Func:    "(*client).Delete",
			Replace: "&metav1.Preconditions{UID: &pod.UID}",
			With:    "nil",
			Run:     "TestTheDrainerSurvivesFaultsOnAServer/the_first_DELETE.*meets_503:",
		},
		{
			Why:     "a node is marked and not cordoned",
			Package: "..",
			Func:    "cordonWith",
			Replace: "yes := true",
			With:    "yes := false",
			Run:     "TestTheDrainerKeepsItsPromiseInMemory/R-DR-01",
		},
		{
			Why:     "a release uncordons a node that was cordoned before",
			Package: "..",
			Func:    "releaseOf",
			Replace: "m.opensNode(node, c.mark) && !m.cordonReplaced(node)",
			With:    "node.Spec.Unschedulable",
			Run:     "TestTheDrainerKeepsItsPromiseInMemory/a_node_that_was_cordoned",
		},
	})
}
