// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests of the process catch a command that is broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a dry run drains", File: "main.go", Run: "TestPlanIsWhatTheDrainDoes", Old: "if s.DryRun {", New: "if s.DryRun && ctx == nil {"},
		{Name: "an interrupt ends the process", File: "interrupt.go", Run: "TestInterruptGivesBack",
			Old: "if running.Err() != nil {", New: "if running.Err() == nil {"},
		{Name: "a missing right is waited for", File: "teller.go", Run: "TestMissingRights",
			Old: "case hopeless = <-c.client.denied:\n\t\t\tstop()", New: "case hopeless = <-c.client.denied:\n"},
		{Name: "all nodes at once", File: "app.go", Run: "TestSelectorKeepsMaxNodes", Old: "MaxNodes: s.Max(), ", New: `MaxNodes: intstr.FromString("100%"), `},
		{Name: "a responder that is named is not asked", File: "responders.go", Run: "TestResponderIsNamed", Old: "known[name] = pods", New: "_, _ = known[name], pods"},
		{Name: "a release leaves the request of a killed drain", File: "responders.go", Run: "TestRequestToAPod", Old: "request.Holder != holder", New: "request.Holder == holder"},
	})
}
