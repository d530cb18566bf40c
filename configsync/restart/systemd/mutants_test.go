// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a unit that is broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Kill(t, []mutate.Mutant{
		{Name: "status 0 comes back on failure", File: "policy.go", Run: "TestPolicySays", Old: "clean := status == 0 || ", New: "clean := "},
		{Name: "prevented statuses come back", File: "policy.go", Run: "TestPolicySays", Old: "case slices.Contains(p.Prevent, status):", New: "case false:"},
		{Name: "the start limit is never reached", File: "policy.go", Run: "TestPolicyFinds", Old: "if p.Burst <= 0 || ", New: "if p.Burst >= 0 || "},
		{Name: "infinity wraps round", File: "policy.go", Run: "TestPolicyOfProperties", Old: "if us > uint64(largest/time.Microsecond) {", New: "if us == 0 {"},
		{Name: "the restart comes before its preparation", File: "unit.go", Run: "TestRestartOfAUnit", Old: "if u.o.Prepare != nil {", New: "if false {"},
		{Name: "a dropped restart is done", File: "unit.go", Run: "TestRestartOfAUnit", Old: `case "done", `, New: `case "done", "canceled", `},
		{Name: "connections are left open", File: "unit.go", Run: "TestRestartOfAUnit",
			Old: "defer bus.Close()\n\tdone := ", New: "done := "},
		{Name: "a slow restart is an error", File: "unit.go", Run: "TestSlowRestart", Old: "return context.Cause(ctx) // nil", New: "return context.Cause(short) // nil"},
		{Name: "a failed unit is well", File: "unit.go", Run: "TestCheckOfAUnit", Old: `state != "active"`, New: `state == ""`},
	})
}
