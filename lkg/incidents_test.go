// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "a crash loop does not leave a config",
			Func:    "(*decision).suspectCurrent",
			Replace: "n > tolerated",
			With:    "false",
			Run:     "TestTranscripts|TestACrashingConfigIsNeverPromoted",
		},
		{
			Why:     "a config on trial is used by a start that is not on record",
			Func:    "(*decision).try",
			Replace: "!d.in.Recorded && onTrial",
			With:    "false",
			Run:     "TestChecksAreLazy",
		},
		{
			Why:     "a bad local config does not stop the start",
			Func:    "Decide",
			Replace: "local.Outcome != CheckOK",
			With:    "false",
			Run:     "TestChecksAreLazy|TestRefusalIsTyped",
		},
		{
			Why:     "a fallback that crashes is used again and again",
			Func:    "(*decision).crashedBelow",
			Replace: "a.n > tolerated",
			With:    "false",
			Run:     "TestTranscripts",
		},
		{
			Why:     "a crashing config is promoted by its accumulated time",
			Func:    "(*Progress).judge",
			Replace: "k.Run < l.MinHealthyRun",
			With:    "false",
			Run:     "TestPromoteTable",
		},
		{
			Why:     "a failed probe does not break the healthy run",
			Func:    "soakRecord.after",
			Replace: "k.Run, k.spell = 0, 0",
			With:    "k.spell = 0",
			Run:     "TestPromoteTable",
		},
	})
}
