// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "all incarnations of a machine share one token",
			Func:    "Token",
			Replace: `fmt.Sprintf("%s-%s-%d", short(cluster, 8), short(uid, 16), incarnation)`,
			With:    `fmt.Sprintf("%s-%s-%d", short(cluster, 8), short(uid, 16), min(incarnation, 1))`,
			Run:     "TestToken$",
		},
	})
}
