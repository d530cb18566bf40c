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
			Why:     "an eviction names no UID",
			Func:    "(*client).evict",
			Replace: "options.Preconditions = &metav1.Preconditions{UID: &pod.UID}",
			Run:     "TestOnlyTheMeantPodIsTouched",
		},
		{
			Why:     "the Lease of a living kubelet is overruled",
			Func:    "(*leaseKeeper).renew",
			Replace: "!last.Equal(found)",
			With:    "last.Equal(time.Time{})",
			Run:     "TestLivingKubeletIsLeftAlone|TestKubeletComesInBetween",
		},
	})
}
