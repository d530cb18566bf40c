// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/belayproject/belay/internal/archtest"
	"github.com/belayproject/belay/internal/raceshare"
)

// An event is one line of go test -json.
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	FailedBuild string
	Key         string
}

// A report follows the events of one or more runs of go test.
type report struct {
	out     io.Writer
	rules   []rule
	output  map[[2]string][]string // by package and test, until the test ends
	failing map[string]bool        // packages with a failed test
	shared  map[string]bool        // packages with a test that has left out something under the race detector
	sharing map[string]bool        // those tests, without their subtests

	passed, failed, skipped int
	unexpected              []string
}

func newReport(out io.Writer, rules []rule) *report {
	return &report{
		out: out, rules: rules, output: map[[2]string][]string{}, failing: map[string]bool{}, shared: map[string]bool{}, sharing: map[string]bool{},
	}
}

// read takes in events until the end. Lines that are no events are shown as they are.
func (r *report) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadString('\n')
		var e event
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &e) != nil:
			fmt.Fprint(r.out, line)
		default:
			r.take(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the events of go test: %w", err)
		}
	}
}

func (r *report) take(e event) {
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.output[key] = append(r.output[key], e.Output)
	case "attr":
		if e.Key == raceshare.Attribute {
			test, _, _ := strings.Cut(e.Test, "/")
			r.shared[e.Package], r.sharing[test] = true, true
		}
	case "pass", "fail", "skip":
		output := r.output[key]
		delete(r.output, key)
		if e.Test == "" {
			r.endPackage(e, output)
		} else {
			r.endTest(e, output)
		}
	}
}

// takeShared gives the packages and tests that have left out something under the race detector since it was asked last.
func (r *report) takeShared() (pkgs, tests []string) {
	pkgs, tests = slices.Sorted(maps.Keys(r.shared)), slices.Sorted(maps.Keys(r.sharing))
	clear(r.shared)
	clear(r.sharing)
	return pkgs, tests
}

func (r *report) endTest(e event, output []string) {
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed++
		r.failing[e.Package] = true
		fmt.Fprint(r.out, strings.Join(output, ""))
	case "skip":
		r.skipped++
		r.skip(e, reason(output))
	}
}

// endPackage shows the package's own line, or all it said if it failed. A package that fails although none of its tests did
// (it does not build, or was ended from outside) counts as a failure.
func (r *report) endPackage(e event, output []string) {
	if e.Action == "fail" {
		fmt.Fprint(r.out, strings.Join(output, ""))
		if e.FailedBuild != "" || !r.failing[e.Package] {
			r.failed++
			r.tellUnfinished(e.Package)
		}
		return
	}
	for _, line := range output {
		if strings.HasPrefix(line, "ok ") {
			fmt.Fprint(r.out, line)
		}
	}
}

// tellUnfinished shows what tests that never ended have said.
func (r *report) tellUnfinished(pkg string) {
	for key, output := range r.output {
		if key[0] == pkg {
			fmt.Fprint(r.out, strings.Join(output, ""))
			delete(r.output, key)
		}
	}
}

func (r *report) skip(e event, why string) {
	name := inModule(e.Package) + "." + e.Test
	for _, rule := range r.rules {
		if rule.allows(inModule(e.Package), e.Test) {
			fmt.Fprintf(r.out, "skipped, as allowed (%s): %s: %s\n", rule.why, name, why)
			return
		}
	}
	r.unexpected = append(r.unexpected, name+": "+why)
}

func (r *report) fail(why string) {
	r.failed++
	fmt.Fprintln(r.out, why)
}

// finish prints the end of the report and tells whether all is well.
func (r *report) finish() bool {
	for _, s := range r.unexpected {
		fmt.Fprintf(r.out, "skipped without leave: %s\n", s)
	}
	if r.passed+r.failed == 0 {
		r.fail("no test ran")
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	return r.failed == 0 && len(r.unexpected) == 0
}

// reason gives what a skipped test said, on one line.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	if len(said) == 0 {
		return "it does not say why"
	}
	return strings.Join(said, " ")
}

func inModule(pkg string) string { return strings.TrimPrefix(pkg, archtest.Module+"/") }
