// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestBrokenPlansDisagreeWithTheServer breaks the arithmetic of Plan, and demands that the server is seen to disagree.
func TestBrokenPlansDisagreeWithTheServer(t *testing.T) {
	const file, run = "../../drain/budget.go", "^TestPlanAgreesWithTheServer$"
	mutate.Sample(t, []mutate.Mutant{
		{
			Name: "a budget gives one more than it allows", File: file, Run: run,
			Old: "b.given < b.allowed()", New: "b.given <= b.allowed()",
		},
		{
			Name: "an unready pod leaves although its app is not healthy", File: file, Run: run,
			Old: "st.CurrentHealthy >= st.DesiredHealthy\n}", New: "st.CurrentHealthy >= 0\n}",
		},
	})
}
