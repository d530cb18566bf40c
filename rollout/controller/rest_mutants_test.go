// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// So are those of the rest between passes.
func TestRestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "wake-ups in vain are followed by no rest", File: "run.go", Run: "TestWakeUpsInVain", Old: "	d := min(restTimes*e.took, longestRest)\n", New: "	d := 0 * e.took\n"},
		{Name: "a wake-up in a rest is lost", File: "run.go", Run: "TestWakeUpInARest", Old: "			woken = true\n", New: ""},
		{Name: "who wants something waits for the rest", File: "run.go", Run: "TestRestEnds", Old: "c.wanted() != asked", New: "c.wanted() == \"\""},
		{Name: "who wants something during a pass waits for the rest", File: "controller.go", Run: "TestNoRestFor", Old: "goesOn), p.asked\n", New: "goesOn), c.wanted()\n"},
		{Name: "a rest that ends as asked is followed by none", File: "run.go", Run: "TestRestEndsAsAsked", Old: "max(soonest, after-rest)", New: "after-rest"},
		{Name: "a rest comes before what was asked", File: "run.go", Run: "TestRestEndsAsAsked", Old: "after-rest)", New: "after)"},
		{Name: "what is said again is a write", File: "round.go", Run: "TestWakeUpsInVain", Old: "		p.repeated++\n", New: ""},
		{Name: "what waits for people is in flight", File: "controller.go", Run: "TestWakeUpsInVain", Old: "s.State == \"\" && !lent", New: "!lent"},
		{Name: "a controller rests in flight", File: "run.go", Run: "TestNoRest|TestRest$", Old: "e.writes > 0 || e.inFlight", New: "e.writes > 0"},
	})
}
