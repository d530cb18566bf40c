// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Statement is one line of the comparison with the Kubernetes proposal in RequirementsFile.
type Statement struct {
	Line  int
	ID    string
	Says  string   // what the proposal says, in our words
	Belay string   // met, or "differs: " or "not yet: " and why
	Rows  []string // the requirements that it belongs to
	Tests []string // package-path.TestName; empty only for "not yet: "
}

const whyStatements = "each statement of the proposal is met, or differs for a reason that a reader can judge"

var (
	statementStart = regexp.MustCompile(`^\| KP-`)
	statementLine  = regexp.MustCompile(`^\| (KP-\d{3}) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`)
	statementBelay = regexp.MustCompile(`^(?:met|(?:differs|not yet): .+)$`)
)

// ParseStatements reads the lines of the comparison. A line that begins like one and is none is an error with its
// number.
func ParseStatements(text []byte) ([]Statement, error) {
	var all []Statement
	var errs []error
	for i, line := range strings.Split(string(text), "\n") {
		if !statementStart.MatchString(line) {
			continue
		}
		s, err := parseStatement(line)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", RequirementsFile, i+1, err))
			continue
		}
		s.Line = i + 1
		all = append(all, s)
	}
	return all, errors.Join(errs...)
}

func parseStatement(line string) (Statement, error) {
	m := statementLine.FindStringSubmatch(line)
	if m == nil {
		return Statement{}, fmt.Errorf("line %q is not of the form | ID | says | belay | rows | shown by |", line)
	}
	s := Statement{ID: m[1], Says: m[2], Belay: m[3], Rows: strings.Split(m[4], ", ")}
	if !statementBelay.MatchString(s.Belay) {
		return Statement{}, fmt.Errorf("%s: %q is neither met nor differs nor not yet, with a reason", s.ID, s.Belay)
	}
	if m[5] == notYet && strings.HasPrefix(s.Belay, notYet) {
		return s, nil
	}
	for _, cell := range strings.Split(m[5], ", ") {
		t := testName.FindStringSubmatch(cell)
		if t == nil {
			return Statement{}, fmt.Errorf("%s: %q is no test as `package.TestName`", s.ID, cell)
		}
		s.Tests = append(s.Tests, t[1])
	}
	return s, nil
}

// StatementsTrue checks that the statements are numbered from 1 without a gap, that each belongs to requirements that
// exist, and that each of its tests exists and speaks of one of them.
func StatementsTrue(all []Statement, tests []Test) []Violation {
	byName := map[string]Test{}
	for _, t := range tests {
		byName[t.Name] = t
	}
	known := allIDs()
	var vs []Violation
	for i, s := range all {
		if want := fmt.Sprintf("KP-%03d", i+1); s.ID != want {
			vs = append(vs, s.violation("stands where "+want+" belongs"))
		}
		for _, id := range s.Rows {
			if !slices.Contains(known, id) {
				vs = append(vs, s.violation(fmt.Sprintf("belongs to %q, which is no requirement", id)))
			}
		}
		for _, name := range s.Tests {
			t, exists := byName[name]
			switch {
			case !exists:
				vs = append(vs, s.violation(fmt.Sprintf("names the test %q, which does not exist", name)))
			case !slices.ContainsFunc(s.Rows, t.mentions):
				vs = append(vs, s.violation(fmt.Sprintf("names the test %q, which mentions none of its rows", name)))
			}
		}
	}
	return vs
}

func (s Statement) violation(what string) Violation {
	return Violation{fmt.Sprintf("%s:%d", RequirementsFile, s.Line), s.ID + " " + what, whyStatements}
}
