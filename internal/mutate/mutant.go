// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"fmt"
	"path/filepath"
	"strings"
)

// A mutant is one way to break a package: a text in place of another one in one file.
type mutant struct {
	operator string // the kind of change
	function string // the function, constant or variable that is broken
	expr     string // the expression or statement that is replaced, in canonical form
	with     string // the text that replaces it
	line     int    // of the change in its file
	detail   string // what a report says of the change, if not with

	source     *source
	start, end int
}

// newMutant returns the mutant that has with in place of r.
func newMutant(s *source, scope, operator string, r span, with string) mutant {
	return mutant{
		operator: operator, function: scope, expr: canonical(s.textOf(r)), with: with, line: s.fset.Position(r.pos).Line,
		source: s, start: s.offset(r.pos), end: s.offset(r.end),
	}
}

// mutated returns the text of the broken file.
func (m mutant) mutated() string { return m.source.text[:m.start] + m.with + m.source.text[m.end:] }

// String says where the mutant is and what it changes.
func (m mutant) String() string {
	old, change := shorten(m.source.text[m.start:m.end]), m.detail
	switch {
	case change != "":
	case m.with == "":
		change = "delete it"
	default:
		change = "replace it by " + shorten(m.with)
	}
	if old != "" {
		change = old + ": " + change
	}
	return fmt.Sprintf("%s:%d %s %s: %s", filepath.Base(m.source.path), m.line, m.function, m.operator, change)
}

// shorten returns a text in one line of bounded length.
func shorten(text string) string {
	const most = 60
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}
