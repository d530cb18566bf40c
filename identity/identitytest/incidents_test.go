// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "a stopping member deletes a Lease that changed",
			Package: "..",
			Func:    "(*Member).remove",
			Replace: "&metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}",
			With:    "nil",
			Run:     "^TestIdentityOnTheServerInMemory$",
		},
		{
			Why:     "a Lease that was created anew is released",
			Package: "..",
			Func:    "(*tenure).tryRelease",
			Replace: "now.value.UID != t.epoch.UID || holderOf(now.value) != t.epoch.Holder",
			With:    "holderOf(now.value) != t.epoch.Holder",
			Run:     "^TestIdentityOnTheServerInMemory$",
		},
	})
}
