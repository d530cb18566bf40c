// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"fmt"
	"path/filepath"
	"strings"
)

// A Mutant is one way to break a package: a text in place of another one in one file.
type Mutant struct {
	// Operator names the kind of change.
	Operator string
	// Func names the function, constant or variable that is broken.
	Func string
	// Expr is the expression or statement that is replaced, in canonical form.
	Expr string
	// With is the text that replaces it.
	With string
	// Line is the line of the change in its file.
	Line int

	source     *source
	start, end int
	detail     string // what a report says of the change, if not With
}

// newMutant returns the mutant that has with in place of r.
func newMutant(s *source, scope, operator string, r span, with string) Mutant {
	return Mutant{
		Operator: operator, Func: scope, Expr: canonical(s.textOf(r)), With: with, Line: s.fset.Position(r.pos).Line,
		source: s, start: s.offset(r.pos), end: s.offset(r.end),
	}
}

// mutated returns the text of the broken file.
func (m Mutant) mutated() string { return m.source.text[:m.start] + m.With + m.source.text[m.end:] }

// String says where the mutant is and what it changes.
func (m Mutant) String() string {
	old, change := shorten(m.source.text[m.start:m.end]), m.detail
	switch {
	case change != "":
	case m.With == "":
		change = "delete it"
	default:
		change = "replace it by " + shorten(m.With)
	}
	if old != "" {
		change = old + ": " + change
	}
	return fmt.Sprintf("%s:%d %s %s: %s", filepath.Base(m.source.path), m.Line, m.Func, m.Operator, change)
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
