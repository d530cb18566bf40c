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

// The skips that runs of the system tier have shown: by a root that may not mount, on a machine that lacks what a test needs, and with
// other binaries.
var seen = []struct{ pkg, test string }{
	{"checkpoint", "TestFullDiskUsesTheBallastOnce"},
	{"checkpoint", "TestNoInodesLeftIsFull"},
	{"checkpoint", "TestReadOnlyDiskIsRead"},
	{"examples/agent/app", "TestAgentStartsOnABadDisk/readonly"},
	{"examples/agent/app", "TestAgentStartsWithoutRecords/first-full"},
	{"examples/demo", "TestDemoWithARealKubelet"},
	{"internal/testenv/reaper", "TestCloseDoesNotReachThroughMounts"},
	{"internal/testenv/nodetier", "TestCrashesEndTheRealKubelet"},
	{"internal/testenv/nodetier", "TestNodeRunsAPodAndLeavesNothing"},
	{"internal/testenv/nodetier", "TestKilledOwnerLeavesNoNode"},
	{"examples/internal/e2e", "TestRealKubeletSurvivesBadConfig"},
	{"internal/testenv", "TestServerSaysThePinnedRelease"},
}

// TestShippedRulesAllowWhatIsSkipped shows that a run passes on a machine that lacks what a test needs.
func TestShippedRulesAllowWhatIsSkipped(t *testing.T) {
	rules, err := readRules(repository + "/.ci/skips.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range seen {
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.allows(s.pkg, s.test) }) {
			t.Errorf("%s.%s may not be skipped, and has been", s.pkg, s.test)
		}
	}
}

// TestShippedRulesHaveTests shows that no rule outlives its tests, and that each of its alternatives names one.
func TestShippedRulesHaveTests(t *testing.T) {
	tree, err := archtest.ReadTree(os.DirFS(repository))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := readRules(repository + "/.ci/skips.txt")
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
