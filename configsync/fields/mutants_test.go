// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fields_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches each of these.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "the shortest rule counts", File: "policy.go", Run: "TestLongestRuleCounts",
			Old: "r != nil && more+1 > length {", New: "r != nil && best == nil && more+1 > length {"},
		{Name: "a star is as good as a name", File: "policy.go", Run: "TestLongestRuleCounts",
			Old: "more+1 > length {", New: "more+1 >= length {"},
		{Name: "pools are not compared", File: "decide.go", Run: "TestPools",
			Old: "case len(r.Pools) > 0 && !slices.Contains(r.Pools, pool):", New: "case false:"},
		{Name: "a node without a pool is in all", File: "decide.go", Run: "TestPools",
			Old: "case len(r.Pools) > 0 && pool == \"\":", New: "case len(r.Pools) > 0 && pool == \"\":\n\t\tr = &Rule{}"},
		{Name: "the zero policy permits", File: "decide.go", Run: "TestPools",
			Old: "c.Action = Forbid // the zero Policy", New: ""},
		{Name: "the last action wins", File: "decide.go", Run: "TestStrongestActionWins",
			Old: "action.strength() > d.Action.strength()", New: "action != \"\""},
		{Name: "what is emptied is not changed itself", File: "decide.go", Run: "TestNoWayAround|TestChangesAre",
			Old: "case !isEnd(a):\n\t\tvisit(path, text)", New: "case !isEnd(a):"},
		{Name: "null is an empty list", File: "decide.go", Run: "TestChangesAre",
			Old: "_, ok := b.([]any)\n\t\treturn ok", New: "_, ok := b.([]any)\n\t\treturn ok || b == nil"},
		{Name: "two rules for one path", File: "policy.go", Run: "TestPolicyIsStrict",
			Old: "if b.rule != nil {", New: "if false {"},
		{Name: "keys of any length are told", File: "path.go", Run: "TestErrorsAreBounded",
			Old: "name = clipped(name)", New: ""},
	})
}
