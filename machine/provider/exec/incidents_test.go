// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package exec_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "a reply for another token is accepted",
			Func:    "checkInstance",
			Replace: "i.Token != token || provider.CheckToken(i.Token) != nil",
			With:    "provider.CheckToken(i.Token) != nil",
			Run:     "TestRepliesAreJudged",
		},
		{
			Why:     "an error of a provider contains a secret",
			Func:    "failure.err",
			Replace: "hide.scrub(f.Message)",
			With:    "f.Message",
			Run:     "TestSecretsAreHidden",
		},
	})
}
