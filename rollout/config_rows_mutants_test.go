// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests of what configs ask of a rollout, R-CS-85 to R-CS-92, catch one that is broken in any of these ways.
func TestConfigRowsMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a group's own revision is nobody's", File: "group.go", Run: "TestTwoSelectors",
			Old: "		if g.Target != nil {\n			p.targets[i]", New: "		if g.Target == nil {\n			p.targets[i]"},
		{Name: "a name is enough to be done", File: "classify.go", Run: "TestCompletedMeans",
			Old: "		case target.Ref().Is(m.node.Runs):", New: "		case target.Name == m.node.Runs.Name:"},
		{Name: "one more than the rate", File: "caps.go", Run: "TestNeverMoreNodes", Old: "Max: amount(c.Max, n), From", New: "Max: 1 + amount(c.Max, n), From"},
		{Name: "no number of rejections stops it", File: "outcome.go", Run: "TestRejectedConfig",
			Old: "p.sizes.selected); tripped {", New: "p.sizes.selected); tripped && reason == \"\" {"},
		{Name: "one count for all settings", File: "detect_failures.go", Run: "TestSameFault",
			Old: "return failuresRule{limit: max(1, n), after: 1}, nil", New: "return failuresRule{limit: min(2, max(1, n)), after: 1}, nil"},
		{Name: "who is gone keeps the slot", File: "inflight.go", Run: "TestNodesComeAndGo",
			Old: "		f.state, f.do = protocol.Gone, protocol.EventGone", New: "		f.state = protocol.Gone"},
		{Name: "who comes late is on trial too", File: "classify.go", Run: "TestLateNode", Old: "if m.joined && a.completed", New: "if false && a.completed"},
	})
}
