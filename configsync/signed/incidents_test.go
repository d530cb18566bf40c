// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package signed_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "signatures are not verified",
			Func:    "Keys.Inspect",
			Replace: "ok && ed25519.Verify(key, message, s.sum)",
			With:    "ok && len(key) > 0",
			Run:     "TestOneGoodSignature",
		},
	})
}
