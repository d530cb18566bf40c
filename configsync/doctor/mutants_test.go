// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a doctor that is broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "an open state directory is fine", File: "checks.go", Run: "TestEachTrouble", Old: "if d.Mode&0o077 != 0 {", New: "if d.Mode == 0 {"},
		{Name: "records in memory are fine", File: "checks.go", Run: "TestEachTrouble", Old: "case slices.Contains(fleeting[:], d.FileSystem):", New: "case d.Path == \"\":"},
		{Name: "a source that was never seen is fine", File: "configs.go", Run: "TestEachTrouble", Old: "return one(CheckSource, Problem, \"the source was never seen", New: "return one(CheckSource, OK, \"the source was never seen"},
		{Name: "a trial may go on for ever", File: "configs.go", Run: "TestOverdue|TestEachTrouble", Old: "now.Sub(since) > max(overdue*needed, leastOverdue)", New: "now.IsZero()"},
		{Name: "any restart policy will do", File: "checks.go", Run: "TestEachTrouble", Old: "if u.Restart != \"always\" {", New: "if u.Restart == \"\" {"},
		{Name: "nobody misses a right", File: "configs.go", Run: "TestEachTrouble", Old: "case len(s.Denied) > 0:", New: "case len(s.Denied) > 99:"},
		{Name: "nobody is told that configs wait", File: "configs.go", Run: "TestEachTrouble", Old: "if f.Proof == nil {", New: "if true {"},
		{Name: "problems are not counted", File: "finding.go", Run: "TestEachTrouble", Old: "r.Problems++", New: ""},
		{Name: "an object that a controller makes is missed", File: "configs.go", Run: "TestEachTrouble", Old: "s.Absent && s.Awaited:", New: "s.Awaited && !s.Absent:"},
		{Name: "a source that nobody looks at is silence", File: "configs.go", Run: "TestEachTrouble", Old: "s != nil && s.Names {", New: "s != nil && s.Absent {"},
	})
}
