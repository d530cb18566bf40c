// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// RequirementsFile is the list of requirements, inside the module.
const RequirementsFile = "docs/requirements.md"

const (
	notYet = "not yet"

	whyRows   = "the list holds every requirement exactly once, so that nothing that was asked for can be forgotten"
	whyShown  = "a row names the tests that show it; a name that leads nowhere is a promise without proof"
	whyClaims = "a test that claims a row belongs in the list: run `go run ./internal/archtest/cmd/requirements`"
)

// areas are the requirement areas and the number of rows of each. L-CS are lessons: what went wrong elsewhere, and must
// not here. S-CS are threats: what somebody may try.
var areas = []struct {
	code string
	rows int
}{{"R-CS", 93}, {"L-CS", 42}, {"S-CS", 11}, {"R-DR", 20}, {"R-RO", 34}, {"R-MA", 30}, {"R-ID", 21}, {"R-AU", 10}}

// A Row is one line of the list of requirements. Tests holds package-path.TestName; it is empty for a row "not yet"
// shown.
type Row struct {
	Line    int
	ID      string
	Meaning string
	Tests   []string
}

var (
	rowStart = regexp.MustCompile(`^\| [RLS]-`)
	rowLine  = regexp.MustCompile(`^\| ([RLS]-[A-Z]+-\d+) \| (.+) \| ([^|]+) \|$`)
	testName = regexp.MustCompile("^`([a-z0-9_./-]+\\.(?:Test|Fuzz|Benchmark|Example)\\w*)`$")
)

// ParseRows reads the rows of the list. A line that begins like a row and is none is an error with its number.
func ParseRows(text []byte) ([]Row, error) {
	var rows []Row
	var errs []error
	for i, line := range strings.Split(string(text), "\n") {
		if !rowStart.MatchString(line) {
			continue
		}
		row, err := parseRow(line)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", RequirementsFile, i+1, err))
			continue
		}
		row.Line = i + 1
		rows = append(rows, row)
	}
	return rows, errors.Join(errs...)
}

func parseRow(line string) (Row, error) {
	m := rowLine.FindStringSubmatch(line)
	if m == nil {
		return Row{}, fmt.Errorf("row %q is not of the form | ID | meaning | shown by |", line)
	}
	row := Row{ID: m[1], Meaning: m[2]}
	if m[3] == notYet {
		return row, nil
	}
	for _, cell := range strings.Split(m[3], ", ") {
		t := testName.FindStringSubmatch(cell)
		if t == nil {
			return Row{}, fmt.Errorf("%q is neither %q nor a test as `package.TestName`", cell, notYet)
		}
		row.Tests = append(row.Tests, t[1])
	}
	return row, nil
}

// RowsComplete checks that every requirement is listed exactly once and in order, and none that does not exist.
func RowsComplete(rows []Row) []Violation {
	want := allIDs()
	var vs []Violation
	seen := map[string]int{}
	for _, r := range rows {
		if !slices.Contains(want, r.ID) {
			vs = append(vs, r.violation("is no requirement", whyRows))
		}
		if first, again := seen[r.ID]; again {
			vs = append(vs, r.violation(fmt.Sprintf("is listed already, on line %d", first), whyRows))
		}
		seen[r.ID] = r.Line
	}
	for _, id := range want {
		if _, ok := seen[id]; !ok {
			vs = append(vs, Violation{RequirementsFile, id + " is missing", whyRows})
		}
	}
	return vs
}

// RowsTrue checks the last column against what the tests say of themselves, both ways.
func RowsTrue(rows []Row, tests []Test) []Violation {
	byName := map[string]Test{}
	for _, t := range tests {
		byName[t.Name] = t
	}
	var vs []Violation
	for _, r := range rows {
		for _, name := range r.Tests {
			t, exists := byName[name]
			switch {
			case !exists:
				vs = append(vs, r.violation(fmt.Sprintf("names the test %q, which does not exist", name), whyShown))
			case !t.mentions(r.ID):
				vs = append(vs, r.violation(fmt.Sprintf("names the test %q, which does not mention it", name), whyShown))
			}
		}
		if claimed, _ := speakers(tests, r.ID); len(r.Tests) == 0 && len(claimed) > 0 {
			vs = append(vs, r.violation(fmt.Sprintf("says %q, but %s claims it", notYet, claimed[0]), whyClaims))
		}
	}
	return vs
}

// MentionsKnown checks that the tests speak only of requirements that exist.
func MentionsKnown(mentioned map[string]string) []Violation {
	want := allIDs()
	var vs []Violation
	for id, where := range mentioned {
		if !slices.Contains(want, id) {
			vs = append(vs, Violation{where, fmt.Sprintf("mentions %s, which is no requirement", id), whyRows})
		}
	}
	slices.SortFunc(vs, func(a, b Violation) int { return strings.Compare(a.Where+a.What, b.Where+b.What) })
	return vs
}

// FillRows rewrites the last column of the list after what the tests say of themselves: each row names the tests that
// claim it or, where none does, those that speak of it in their body.
func FillRows(text []byte, tests []Test) ([]byte, error) {
	if _, err := ParseRows(text); err != nil {
		return nil, err
	}
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		m := rowLine.FindSubmatch(line)
		if m == nil {
			continue
		}
		shown := notYet
		names, inside := speakers(tests, string(m[1]))
		if len(names) == 0 {
			names = inside
		}
		if len(names) > 0 {
			shown = "`" + strings.Join(names, "`, `") + "`"
		}
		lines[i] = fmt.Appendf(nil, "| %s | %s | %s |", m[1], m[2], shown)
	}
	return bytes.Join(lines, []byte("\n")), nil
}

func (r Row) violation(what, why string) Violation {
	return Violation{fmt.Sprintf("%s:%d", RequirementsFile, r.Line), r.ID + " " + what, why}
}

func allIDs() []string {
	var ids []string
	for _, a := range areas {
		for n := range a.rows {
			ids = append(ids, fmt.Sprintf("%s-%02d", a.code, n+1))
		}
	}
	return ids
}

// speakers gives the sorted names of the tests that claim a requirement in their name or comment, and of those that
// only speak of it in their body.
func speakers(tests []Test, id string) (claim, mention []string) {
	for _, t := range tests {
		switch {
		case slices.Contains(t.Claims, id):
			claim = append(claim, t.Name)
		case slices.Contains(t.Body, id):
			mention = append(mention, t.Name)
		}
	}
	slices.Sort(claim)
	slices.Sort(mention)
	return claim, mention
}

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
			vs = append(vs, s.makeViolation("stands where "+want+" belongs"))
		}
		for _, id := range s.Rows {
			if !slices.Contains(known, id) {
				vs = append(vs, s.makeViolation(fmt.Sprintf("belongs to %q, which is no requirement", id)))
			}
		}
		for _, name := range s.Tests {
			t, exists := byName[name]
			switch {
			case !exists:
				vs = append(vs, s.makeViolation(fmt.Sprintf("names the test %q, which does not exist", name)))
			case !slices.ContainsFunc(s.Rows, t.mentions):
				vs = append(vs, s.makeViolation(fmt.Sprintf("names the test %q, which mentions none of its rows", name)))
			}
		}
	}
	return vs
}

func (s Statement) makeViolation(what string) Violation {
	return Violation{fmt.Sprintf("%s:%d", RequirementsFile, s.Line), s.ID + " " + what, whyStatements}
}
