// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "an instance starts before its intent is recorded",
			Func:    "(*core).Create",
			Replace: "h.write()",
			With:    "error(nil)",
			Run:     "TestPromises",
		},
		{
			Why:     "a token is used again after its instance was deleted",
			Func:    "(*store).buried",
			Replace: "err == nil",
			With:    "false",
			Run:     "TestPromises",
		},
		{
			Why:     "deleting a machine follows a symbolic link",
			Func:    "(*core).destroy",
			Replace: "!info.IsDir()",
			With:    "false",
			Run:     "TestDestroyFollowsNoLink",
		},
	})
}
