// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// R-MA-25: each way to let an end through is noticed.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "it fails open", File: "review.go", Run: "TestReview", Old: "if r.WarnOnly {\n\t\t\treturn", New: "if true {\n\t\t\treturn"},
		{Name: "warnings refuse", File: "review.go", Run: "TestReview", Old: "if blocker != \"\" && !r.WarnOnly {", New: "if blocker != \"\" {"},
		{Name: "nothing refuses", File: "review.go", Run: "TestReview", Old: "if blocker != \"\" && !r.WarnOnly {", New: "if blocker == \"?\" {"},
		{Name: "the cache is believed", File: "review.go", Run: "TestReview", Old: "v.Machines = append(v.Machines, *e.machine)", New: "v.Machines = append(v.Machines, machine.Machine{Key: e.machine.Key})"},
		{Name: "who is over is judged", File: "ending.go", Run: "TestReview", Old: "if over(m) {", New: "if false {"},
		{Name: "an entry is not judged", File: "ending.go", Run: "TestReview", Old: "before.Spec.Decommission || !after.Spec.Decommission", New: "!before.Spec.Decommission || !after.Spec.Decommission"},
		{Name: "orphans end", File: "ending.go", Run: "TestReview", Old: "return 0, !orphans, err", New: "return 0, !orphans || true, err"},
		{Name: "a smaller set", File: "ending.go", Run: "TestReview", Old: "return is, is < was, nil", New: "return is, is < was && false, nil"},
		{Name: "deployments have no machines", File: "ending.go", Run: "TestReview", Old: "s.UID == uid || s.Owner.UID == uid", New: "s.UID == uid"},
		{Name: "anything is a review", File: "handler.go", Run: "TestBadReviews", Old: "review.Request == nil ||", New: "false ||"},
	})
}
