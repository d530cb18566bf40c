// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests of numbered attempts catch a drainer that is broken in any of these ways.
func TestAttemptMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "the drain begins with the cordon whatever there is", File: "pass.go", Run: "TestCordonBefore", Old: "p.r.drains && p.wouldBegin()", New: "p.r.drains"},
		{Name: "the drain does not begin with the cordon", File: "pass.go", Run: "TestAttemptWrites", Old: "p.r.drains && p.wouldBegin()", New: "false"},
		{Name: "the drain begins with any cordon", File: "attempts.go", Run: "TestCordonAhead", Old: "r.drains, r.annotate = drains, annotate", New: "r.drains, r.annotate = true, annotate"},
		{Name: "annotations of others are left behind", File: "pass.go", Run: "TestCordonTakes", Old: "if p.r.annotate != nil {", New: "if false {"},
		{Name: "an attempt is latched", File: "settle.go", Run: "TestAttemptWrites", Old: "if p.r.unlatched && !p.d.o.NodeConditions {", New: "if false {"},
		{Name: "an attempt is drained under the cordon of another", File: "attempts.go", Run: "TestEarlierAttempt", Old: "!held || is != attempt", New: "!held || is < 0"},
		{Name: "an attempt is drained without a cordon", File: "attempts.go", Run: "TestAttemptIsDrained", Old: "!held || is != attempt", New: "held && is != attempt"},
		{Name: "an earlier attempt takes the cordon", File: "attempts.go", Run: "TestLaterAttempt", Old: "held && is > attempt {\n		return false, nil", New: "held && is < 0 {\n		return false, nil"},
		{Name: "a release takes the cordon of a later attempt", File: "attempts.go", Run: "TestAttemptIsDrained", Old: "held && is > attempt {\n		return true, nil", New: "held && is < 0 {\n		return true, nil"},
	})
}
