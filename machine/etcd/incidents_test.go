// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "an etcd member leaves without a quorum afterwards",
			Func:    "(*Client).holds",
			Replace: "well < quorum",
			With:    "false",
			Run:     "TestLeave",
		},
	})
}
