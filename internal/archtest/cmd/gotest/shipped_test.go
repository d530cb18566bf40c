// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/archtest"
)

const repository = "../../../.."

// The skips that a run without root, a run without the right to mount, and one with other binaries have shown.
var seen = []struct {
	pkg, test string
	root      bool // root may skip it, too
}{
	{"checkpoint", "TestUntrustedPlacesAreRefused/directory_of_someone_else", false},
	{"checkpoint", "TestPlantedFilesAreNotTrusted/another_owner", false},
	{"checkpoint", "TestFullDiskUsesTheBallastOnce", true},
	{"checkpoint", "TestNoInodesLeftIsFull", true},
	{"checkpoint", "TestReadOnlyDiskIsRead", true},
	{"examples/agent", "TestAgentStartsOnABadDisk/readonly", true},
	{"examples/agent", "TestAgentStartsWithoutRecords/first-full", true},
	{"internal/testenv/reaper", "TestCloseDoesNotReachThroughMounts", true},
	{"internal/testenv/nodetier", "TestCrashesEndTheRealKubelet", true},
	{"internal/testenv/nodetier", "TestNodeRunsAPodAndLeavesNothing", true},
	{"internal/testenv/nodetier", "TestKilledOwnerLeavesNoNode", true},
	{"examples/internal/e2e", "TestRealKubeletSurvivesBadConfig", true},
	{"internal/testenv", "TestServerSaysThePinnedRelease", true},
}

// TestShippedRulesAllowWhatIsSkipped shows that make test passes for users that are not root, and for a root that may not mount.
func TestShippedRulesAllowWhatIsSkipped(t *testing.T) {
	for _, root := range []bool{true, false} {
		rules, err := readRules(repository+"/.ci/skips.txt", root)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range seen {
			allowed := slices.ContainsFunc(rules, func(r rule) bool { return r.allows(s.pkg, s.test) })
			if want := s.root || !root; allowed != want {
				t.Errorf("root %t: %s.%s may be skipped: %t, want %t", root, s.pkg, s.test, allowed, want)
			}
		}
	}
}

// TestShippedRulesHaveTests shows that no rule outlives its tests, and that each of its alternatives names one.
func TestShippedRulesHaveTests(t *testing.T) {
	tree, err := archtest.ReadTree(os.DirFS(repository))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := readRules(repository+"/.ci/skips.txt", false)
	if err != nil {
		t.Fatal(err)
	}
	tests := archtest.Tests(tree)
	for _, r := range rules {
		pattern := strings.TrimSuffix(strings.TrimPrefix(r.test.String(), "^(?:"), ")$")
		for _, name := range strings.Split(pattern, "|") {
			name, _, _ = strings.Cut(name, "/")
			prefix, open := strings.CutSuffix(r.pkg+"."+name, ".*")
			if !slices.ContainsFunc(tests, func(have archtest.Test) bool {
				return have.Name == prefix || open && strings.HasPrefix(have.Name, prefix)
			}) {
				t.Errorf("a rule speaks of %s in %q, and there is no such test", name, r.pkg)
			}
		}
	}
}
