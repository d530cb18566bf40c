// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machinenode_test

import (
	"os"
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// R-MA-01, R-MA-03: machines that are broken in these ways don't pass.
func TestMutants(t *testing.T) {
	if os.Getenv("BELAY_MUTANTS") == "" {
		t.Skip("a real kubelet takes a minute for each mutant: make mutants, or BELAY_MUTANTS=all")
	}
	mutate.Kill(t, []mutate.Mutant{
		{Name: "the status has the versions of the spec", File: "../../machine/decide.go", Run: "TestMachineIsANode",
			Old: "p.s.Node, p.s.Versions = &n.NodeRef, n.Versions", New: "p.s.Node, p.s.Versions = &n.NodeRef, p.Machine.Spec.Versions"},
		{Name: "a Node is updated with work on it", File: "../../machine/update.go", Run: "TestMachineIsANode",
			Old: "case u.Plan.Disrupts && !u.Drained && !u.Sent:", New: "case false:"},
	})
}
