// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/belayproject/belay/internal/archtest"
	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/internal/tier"
)

// An event is one line of go test -json.
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	FailedBuild string
	Key, Value  string
	Elapsed     float64
}

// A report is what is said of one or more runs of go test, which may go on at the same time.
type report struct {
	rules []rule

	mu  sync.Mutex // guards all below, and out
	out io.Writer

	passed, failed, skipped int
	unexpected              []string
	ended                   map[string]bool // tests by package and name
	shared                  map[string]bool // tests that have left out something under the race detector
	left                    map[string]bool // tests that are left to the system tier
	parts                   map[string]bool // tests that are left to the proofs, in whole or in part
	times                   map[string]float64
}

func newReport(out io.Writer, rules []rule) *report {
	return &report{
		out: out, rules: rules, ended: map[string]bool{}, shared: map[string]bool{},
		left: map[string]bool{}, parts: map[string]bool{}, times: map[string]float64{},
	}
}

// A stream follows the events of one run of go test.
type stream struct {
	report  *report
	output  map[[2]string][]string // by package and test, until the test ends
	failing map[string]bool        // packages with a failed test
	failed  int
}

func (r *report) stream() *stream {
	return &stream{report: r, output: map[[2]string][]string{}, failing: map[string]bool{}}
}

// read takes in events until the end. Lines that are no events are shown as they are.
func (s *stream) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadString('\n')
		var e event
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &e) != nil:
			s.report.say(line)
		default:
			s.take(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the events of go test: %w", err)
		}
	}
}

func (s *stream) take(e event) {
	s.report.mu.Lock()
	defer s.report.mu.Unlock()
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(s.report.out, e.Output)
	case "output":
		s.output[key] = append(s.output[key], e.Output)
	case "attr":
		switch e.Key {
		case raceshare.Attribute:
			test, _, _ := strings.Cut(e.Test, "/")
			s.report.shared[e.name(test)] = true
		case tier.Attribute:
			s.report.noteLeft(e)
		}
	case "pass", "fail", "skip":
		output := s.output[key]
		delete(s.output, key)
		if e.Test == "" {
			s.endPackage(e, output)
		} else {
			s.endTest(e, output)
		}
	}
}

// name is that of a test, with the path of its package inside the repository.
func (e event) name(test string) string { return inModule(e.Package) + "." + test }

// noteLeft notes that a test leaves its work, or a part of it, to another tier.
func (r *report) noteLeft(e event) {
	if e.Value == tier.Proofs {
		r.parts[e.name(e.Test)] = true
	} else {
		r.left[e.name(e.Test)] = true
	}
}

func (s *stream) endTest(e event, output []string) {
	r := s.report
	r.ended[e.name(e.Test)] = true
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		s.fail(e.Package, output)
	case "skip":
		if name := e.name(e.Test); !r.left[name] && !r.parts[name] {
			r.skip(e, reason(output))
		}
	}
}

func (s *stream) fail(pkg string, output []string) {
	s.failed++
	s.report.failed++
	s.failing[pkg] = true
	fmt.Fprint(s.report.out, strings.Join(output, ""))
}

// endPackage shows the package's own line, or all it said if it failed. A package that fails although none of its tests did
// (it does not build, or was ended from outside) counts as a failure.
func (s *stream) endPackage(e event, output []string) {
	s.report.times[inModule(e.Package)] += e.Elapsed
	if e.Action == "fail" {
		fmt.Fprint(s.report.out, strings.Join(output, ""))
		if e.FailedBuild != "" || !s.failing[e.Package] {
			s.fail(e.Package, nil)
			s.tellUnfinished(e.Package)
		}
		return
	}
	for _, line := range output {
		if strings.HasPrefix(line, "ok ") {
			fmt.Fprint(s.report.out, line)
		}
	}
}

// tellUnfinished shows what tests that never ended have said.
func (s *stream) tellUnfinished(pkg string) {
	for key, output := range s.output {
		if key[0] == pkg {
			fmt.Fprint(s.report.out, strings.Join(output, ""))
			delete(s.output, key)
		}
	}
}

func (r *report) skip(e event, why string) {
	r.skipped++
	name := e.name(e.Test)
	for _, rule := range r.rules {
		if rule.allows(inModule(e.Package), e.Test) {
			fmt.Fprintf(r.out, "skipped, as allowed (%s): %s: %s\n", rule.why, name, why)
			return
		}
	}
	r.unexpected = append(r.unexpected, name+": "+why)
}

func (r *report) say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprint(r.out, text)
}

func (r *report) fail(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed++
	fmt.Fprintln(r.out, why)
}

// checkRan fails for each test that was to run and did not: it is excluded by a build constraint, was never started,
// or leaves itself to another tier.
func (r *report) checkRan(tests []archtest.MarkedTest) {
	for _, t := range tests {
		if name := t.Dir + "." + t.Name; !r.ended[name] || r.left[name] || r.parts[name] {
			r.fail("did not run: " + name)
		}
	}
}

// longest is the number of packages whose time the report shows.
const longest = 12

// finish prints the end of the report and tells whether all is well. No stream is read any more.
func (r *report) finish() bool {
	for _, s := range r.unexpected {
		fmt.Fprintf(r.out, "skipped without leave: %s\n", s)
	}
	if r.passed+r.failed == 0 {
		r.fail("no test ran")
	}
	pkgs := slices.SortedFunc(maps.Keys(r.times), func(a, b string) int { return cmp.Compare(r.times[b], r.times[a]) })
	for _, pkg := range pkgs[:min(longest, len(pkgs))] {
		fmt.Fprintf(r.out, "%6.0f s %s\n", r.times[pkg], pkg)
	}
	if len(r.shared) > 0 {
		fmt.Fprintf(r.out, "%d tests did a share of their work under the race detector: make searches does all of it\n", len(r.shared))
	}
	if len(r.left) > 0 {
		fmt.Fprintf(r.out, "%d tests are left to make test-system\n", len(r.left))
	}
	if len(r.parts) > 0 {
		fmt.Fprintf(r.out, "%d tests leave their work, or a part of it, to make proofs\n", len(r.parts))
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
