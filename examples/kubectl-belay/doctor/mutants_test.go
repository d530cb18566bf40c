// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// Each check that looks away is noticed.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a dead leader leads", File: "checks.go", Run: "TestEachTrouble", Old: "case !l.Renewed:", New: "case false:"},
		{Name: "what was not seen is well", File: "doctor.go", Run: "TestEachTrouble", Old: "if err := s.Missing[k]; err != nil {", New: "if err := s.Missing[k]; false {"},
		{Name: "any schema", File: "rights.go", Run: "TestEachTrouble", Old: "!reflect.DeepEqual(there, schema)", New: "!reflect.DeepEqual(there, schema) && false"},
		{Name: "rights that can't be asked for are there", File: "rights.go", Run: "TestEachTrouble", Old: "case r.Err != nil:", New: "case false:"},
		{Name: "agents may be silent", File: "checks.go", Run: "TestEachTrouble", Old: "s.Now.Sub(e.Since) > within", New: "s.Now.Sub(e.Since) > 100*within"},
		{Name: "closures of rollouts count", File: "checks.go", Run: "TestEachTrouble", Old: "if c.Scope == \"\" {", New: "if c.Scope != \"\" {"},
		{Name: "broken nodes are no trouble", File: "checks.go", Run: "TestEachTrouble", Old: "case o.State != \"\":", New: "case false:"},
		{Name: "budgets of zero", File: "checks.go", Run: "TestEachTrouble", Old: "st.DesiredHealthy >= st.ExpectedPods", New: "st.DesiredHealthy > st.ExpectedPods"},
		{Name: "one budget is two", File: "checks.go", Run: "TestNothingIsWrong", Old: "if n > 1 {", New: "if n > 0 {"},
	})
}
