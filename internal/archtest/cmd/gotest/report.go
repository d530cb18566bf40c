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

// A report is what is said of one or more runs of go test, which may go on at the same time.
type report struct {
	rules []rule
	more  chan struct{} // has an element when there is something new in shares

	mu     sync.Mutex // guards all below, and out
	out    io.Writer
	shares []share // by package, in the order in which the packages ended

	passed, failed, skipped int
	unexpected              []string
}

// A share is what has left out something under the race detector.
type share struct {
	dir         string // of the module
	pkgs, tests []string
}

func newReport(out io.Writer, rules []rule) *report {
	return &report{out: out, rules: rules, more: make(chan struct{}, 1)}
}

// A stream follows the events of one run of go test.
type stream struct {
	report  *report
	dir     string
	full    bool                           // it must leave out nothing
	output  map[[2]string][]string         // by package and test, until the test ends
	failing map[string]bool                // packages with a failed test
	sharing map[string]map[string]struct{} // by package, the tests that have left out something, without their subtests
	failed  int
}

func (r *report) stream(dir string, full bool) *stream {
	return &stream{
		report: r, dir: dir, full: full, output: map[[2]string][]string{}, failing: map[string]bool{}, sharing: map[string]map[string]struct{}{},
	}
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
		if e.Key == raceshare.Attribute {
			s.share(e)
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

func (s *stream) share(e event) {
	if s.sharing[e.Package] == nil {
		s.sharing[e.Package] = map[string]struct{}{}
	}
	test, _, _ := strings.Cut(e.Test, "/")
	s.sharing[e.Package][test] = struct{}{}
}

func (s *stream) endTest(e event, output []string) {
	r := s.report
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		s.fail(e.Package, output)
	case "skip":
		r.skipped++
		r.skip(e, reason(output))
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
	s.endShare(e.Package)
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

// endShare has what a package has left out made good, which it may be when the package is through.
func (s *stream) endShare(pkg string) {
	tests := slices.Sorted(maps.Keys(s.sharing[pkg]))
	switch {
	case len(tests) == 0:
		return
	case s.full:
		s.fail(pkg, []string{fmt.Sprintf("%q of %q leave out something without the race detector\n", tests, pkg)})
		return
	}
	s.report.shares = append(s.report.shares, share{s.dir, []string{pkg}, tests})
	select {
	case s.report.more <- struct{}{}:
	default:
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

// takeShare gives what one package has left out, those of first before others, or all that is there of one module.
func (r *report) takeShare(first []string, all bool) (share, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.shares) == 0 {
		return share{}, false
	}
	place := func(s share) int {
		at := slices.Index(first, inModule(s.pkgs[0]))
		if at < 0 {
			return len(first)
		}
		return at
	}
	slices.SortStableFunc(r.shares, func(a, b share) int { return cmp.Compare(place(a), place(b)) })
	taken := share{dir: r.shares[0].dir}
	r.shares = slices.DeleteFunc(r.shares, func(s share) bool {
		if s.dir != taken.dir || len(taken.pkgs) > 0 && !all {
			return false
		}
		taken.pkgs, taken.tests = append(taken.pkgs, s.pkgs...), append(taken.tests, s.tests...)
		return true
	})
	slices.Sort(taken.tests)
	taken.tests = slices.Compact(taken.tests)
	return taken, true
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

// finish prints the end of the report and tells whether all is well. No stream is read any more.
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
