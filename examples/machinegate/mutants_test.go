// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// R-MA-25 and R-MA-26: each way to say something else of a change is noticed.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "who is missing ends", File: "judge.go", Run: "TestUnreferenced|TestChanges", Old: "return m.Spec.Decommission && m.Owner == machine.Owner{}", New: "return m.Owner == machine.Owner{}"},
		{Name: "an entry is not seen", File: "judge.go", Run: "TestChanges", Old: "return m.Spec.Decommission && !before.machines[m.Key].Spec.Decommission", New: "return false"},
		{Name: "sets don't shrink", File: "judge.go", Run: "TestChanges", Old: "will.Spec.Replicas < was.Spec.Replicas", New: "will.Spec.Replicas < 0"},
		{Name: "volumes are not looked at", File: "judge.go", Run: "TestChanges", Old: "v.Volumes, v.Workloads = before.cargo(v.Ending)", New: "_, v.Workloads = before.cargo(v.Ending)"},
		{Name: "members are always known", File: "judge.go", Run: "TestChanges", Old: "MembersKnown: before.known", New: "MembersKnown: true"},
		{Name: "rejected is fine", File: "report.go", Run: "TestChanges", Old: "if err == nil && verdicts[rejected] > 0 {", New: "if false {"},
		{Name: "misspelt fields", File: "read.go", Run: "TestBadInput", Old: "\td.DisallowUnknownFields()\n", New: ""},
		{Name: "twice is once", File: "read.go", Run: "TestBadInput", Old: "if _, twice := into[*k]; twice {", New: "if false {"},
	})
}
