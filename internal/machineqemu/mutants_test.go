// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machineqemu_test

import (
	"os"
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests that need no virtual machine catch a provider that is broken in any of these ways.
func TestMutants(t *testing.T) {
	if os.Getenv("BELAY_MUTANTS") == "" {
		t.Skip("the tests are compiled anew for each mutant: make mutants, or BELAY_MUTANTS=all")
	}
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a machine that was switched on is updated", File: "qemu.go", Run: "TestUpdateWaitsForTheGuest", Old: "if on < 0 || !bytes.Contains(", New: "if false && !bytes.Contains("},
		{Name: "the boot before has joined", File: "qemu.go", Run: "TestUpdateWaitsForTheGuest",
			Old: `on := bytes.LastIndex(text, []byte("belay: power on: "+bootMark(r.Digest, config)+"\n"))`, New: `on := bytes.Index(text, []byte("belay: power on: "))`},
		{Name: "kernels are all the same", File: "qemu.go", Run: "TestUnknownKernel", Old: "if !there {", New: "if !there && len(c.images) == 0 {"},
		{Name: "releases are texts", File: "kernels.go", Run: "TestReleasesAreOrdered", Old: "if errX == nil && errY == nil {", New: "if errX == nil && errY != nil {"},
		{Name: "a disk has two names", File: "config.go", Run: "TestConfigs", Old: "case slices.Contains(c.Disks[:i], name):", New: "case slices.Contains(c.Disks[:0], name):"},
	})
}

// So does the script that a machine runs, which is no Go.
func TestMutantsOfBoot(t *testing.T) {
	if os.Getenv("BELAY_MUTANTS") == "" {
		t.Skip("the tests are compiled anew for each mutant: make mutants, or BELAY_MUTANTS=all")
	}
	mutate.Sample(t, []mutate.Mutant{
		{Name: "the power does not come back", File: "boot.sh", Run: "TestUpdateWaitsForTheGuest", Old: `[ "$status" -eq 137 ] || exit "$status"`, New: `exit "$status"`},
	})
}
