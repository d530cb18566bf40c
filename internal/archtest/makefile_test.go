// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// runMake runs a target of the Makefile with programs in front of those of the machine: their names, and the scripts that they are.
func runMake(t *testing.T, programs map[string]string, args ...string) (string, error) {
	t.Helper()
	if _, err := os.ReadFile("../../Makefile"); err != nil { // so that a result for another Makefile is not taken from the cache
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, script := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"-C", "../.."}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "MAKEFLAGS=", "MAKELEVEL=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestMakeGoesOnWithoutPackages shows that make test is not ended by packages that cannot be installed: without a network, or
// because they are not there.
func TestMakeGoesOnWithoutPackages(t *testing.T) {
	for name, aptGet := range map[string]string{
		"no network": "exit 100",
		"no package": `[ "$1" = update ] || exit 100`,
	} {
		t.Run(name, func(t *testing.T) {
			out, err := runMake(t, map[string]string{
				"id": "echo 0", "apt-get": aptGet, "go": "echo no-such-compiler",
			}, "compiler")
			if err != nil || !strings.Contains(out, "installing gcc") || !strings.Contains(out, "there is no C compiler: the race detector stays off") {
				t.Errorf("make compiler = %v, want it to say what is missing and to go on:\n%s", err, out)
			}
		})
	}
}

// TestMakeBenchRunsEveryBenchmark shows that one that misses its bound hides none, and that make fails for it. Those that take long
// have targets of their own.
func TestMakeBenchRunsEveryBenchmark(t *testing.T) {
	const bench = `case "$1 $2" in
"list "*) echo first second third example.org/examples/internal/bench/drain example.org/examples/internal/bench/identity example.org/examples/internal/bench/rollout;;
"run first"|"run second") echo "$2 ran"; exit 1;;
"run "*) echo "$2 ran";;
esac`
	out, err := runMake(t, map[string]string{"go": bench}, "bench")
	if err == nil {
		t.Errorf("make bench succeeds though two are short:\n%s", out)
	}
	for _, want := range []string{"first ran", "second ran", "third ran", "short of their bound: first second\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("make bench says nothing like %q:\n%s", want, out)
		}
	}
	for _, long := range []string{"bench/drain", "bench/identity", "bench/rollout"} {
		if strings.Contains(out, long) {
			t.Errorf("make bench runs %s, which takes long:\n%s", long, out)
		}
	}
	if out, err := runMake(t, map[string]string{"go": strings.ReplaceAll(bench, "exit 1", "exit 0")}, "bench"); err != nil {
		t.Errorf("make bench = %v though all are good:\n%s", err, out)
	}
}

// TestMakeBenchFleetRunsBothBenchmarks shows that the requests of a rollout are counted also where the fleet is short of its bound, and that make fails then.
func TestMakeBenchFleetRunsBothBenchmarks(t *testing.T) {
	const bench = `case "$1 $2" in "run ./fleet"|"run ./rollout") echo "$2 ran"; [ "$2" != "./SHORT" ] || exit 1;; esac`
	for short, want := range map[string]string{"fleet": ": fleet\n", "rollout": ": rollout\n", "nothing": ""} {
		out, err := runMake(t, map[string]string{"go": strings.ReplaceAll(bench, "SHORT", short)}, "bench-fleet")
		if !strings.Contains(out, "./fleet ran\n") || !strings.Contains(out, "./rollout ran\n") {
			t.Errorf("%s is short: one benchmark did not run:\n%s", short, out)
		}
		if (err == nil) != (want == "") || !strings.Contains(out, want) {
			t.Errorf("%s is short: make = %v, want it to say so:\n%s", short, err, out)
		}
	}
}

// TestNothingFallsBetweenTheTiers shows that CI runs each night what make test leaves out: the tests that are marked
// for another tier, and what the race detector makes too long. That the marked ones run in whole is up to gotest.
func TestNothingFallsBetweenTheTiers(t *testing.T) {
	nightly, err := os.ReadFile("../../.github/workflows/nightly.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, list := range regexp.MustCompile(`target: \[([^\]]*)\]`).FindAllStringSubmatch(string(nightly), -1) {
		for target := range strings.SplitSeq(list[1], ",") {
			targets = append(targets, strings.TrimSpace(target))
		}
	}
	for target, want := range map[string]string{
		"test-system": " -system ", "proofs": " -proofs ", "searches": "RACE=off", "race": "BELAY_RACE=all",
	} {
		if !slices.Contains(targets, target) {
			t.Errorf("nightly.yaml does not run make %s: %q", target, targets)
		}
		out, err := runMake(t, nil, "--dry-run", target)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("make --dry-run %s = %v, want it to pass %q:\n%s", target, err, want, out)
		}
	}
}

// TestLongestPackagesAreThere shows that the Makefile begins with packages that have tests: gotest passes by the others in silence.
func TestLongestPackagesAreThere(t *testing.T) {
	raw, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(raw), "\nLONGEST := ")
	list, _, _ = strings.Cut(list, "\n")
	for _, pkg := range strings.Fields(list) {
		if tests, err := filepath.Glob(filepath.Join("../..", pkg, "*_test.go")); err != nil || len(tests) == 0 {
			t.Errorf("LONGEST names %s, which has no tests (%v)", pkg, err)
		}
	}
	if list == "" {
		t.Error("the Makefile does not set LONGEST")
	}
}
