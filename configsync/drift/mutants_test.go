// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a watch that is broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a restart forgets", File: "drift.go", Run: "TestReport", Old: "w.r, w.kept = r, r", New: "w.kept = r"},
		{Name: "told at each look", File: "drift.go", Run: "TestReport", Old: "if w.r.Told == found {", New: "if false {"},
		{Name: "a report repairs", File: "drift.go", Run: "TestReport", Old: "w.o.Policy != Repair || ", New: ""},
		{Name: "overwritten in silence", File: "drift.go", Run: "TestRenderTells", Old: "_ = w.look(ctx)", New: ""},
		{Name: "a kill looks like a drift", File: "drift.go", Run: "TestKilled", Old: `r.Next != "" && found == r.Next`, New: "false"},
		{Name: "a boot looks like a drift", File: "drift.go", Run: "TestBoot", Old: "has || found != Absent", New: "true"},
		{Name: "a removed file may come back", File: "drift.go", Run: "TestRemoved", Old: `w.r.Rendered, w.r.Next = next, ""`, New: `w.r.Rendered, w.r.Next = map[bool]string{false: next}[next == Absent], ""`},
		{Name: "links are followed", File: "inspect.go", Run: "TestReport", Old: "os.Lstat(path)", New: "os.Stat(path)"},
	})
}
