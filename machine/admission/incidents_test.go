// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:  "the admission webhook fails open",
			Func: "Reviewer.respond",
			Replace: `if r.WarnOnly {
			return &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{line(text)}}
		}`,
			With: `if true {
			return &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{line(text)}}
		}`,
			Run: "TestReview",
		},
	})
}
