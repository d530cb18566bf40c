// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestBrokenDrainsAreCaught breaks what the proofs protect, and demands that each is seen on the server.
func TestBrokenDrainsAreCaught(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{
			Name: "a node that was cordoned before is uncordoned", File: "../../drain/mark.go", Run: "^TestNothingIsEvictedAfterACancel$",
			Old: "&& node.Spec.Unschedulable && !m.Unschedulable {", New: "&& node.Spec.Unschedulable {",
		},
		{
			Name: "a cancelled drain keeps its cordons", File: "../../drain/run.go", Run: "^TestNothingIsEvictedAfterACancel$",
			Old: "s.Request.Policy.Soak, s.Last = Release, 0, &st", New: "s.Request.Policy.Soak, s.Last = Cordon, 0, &st",
		},
		{
			Name: "the mark comes without the cordon", File: "../../drain/mark.go", Run: "^TestCordonAndMarkComeInOneWriteBeforeTheFirstEviction$",
			Old: "if c.unschedulable != nil {", New: "if c.unschedulable != nil && len(c.mark.Holders) == 0 {",
		},
		{
			Name: "what a crashed drain has latched is not believed", File: "../../drain/stage.go", Run: "^TestProcessesThatDieAtTheirFirstWriteGetThere$",
			Old: "p.begun() && !mine.Drained.IsZero() {", New: "false && !mine.Drained.IsZero() {",
		},
	})
}
