// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"testing"
	"time"
)

// env is set in the environment of the tests that run on a mutant.
const env = "BELAY_MUTANT"

// Running reports whether this process tests a mutant.
func Running() bool { return os.Getenv(env) != "" }

// incidentLimit bounds the tests of one incident. Some start a control plane.
const incidentLimit = 4 * time.Minute

// all, in the environment, makes [Incidents] run its mutants.
const all = "BELAY_MUTANTS"

// An Incident is a hand-written mutant that stands for an incident or a safety rule.
type Incident struct {
	// Why says what goes wrong with the mutant. It names the mutant too.
	Why string
	// Package is the directory of the package that is broken, relative to the one of the test; empty for that itself.
	Package string
	// Func is the function to break, as a stack trace names it: Plan, (*pass).enter, Ref.String; or a constant or variable.
	Func string
	// Replace is an expression or are statements that Func holds once. Space and comments do not count.
	Replace string
	// With takes the place of Replace.
	With string
	// Run is the pattern of the tests that must fail.
	Run string
}

// Incidents checks that each incident applies to the source. With BELAY_MUTANTS=all in the environment it runs the tests
// on every mutant, and fails t for each that survives.
func Incidents(t *testing.T, incidents []Incident) {
	t.Helper()
	if Running() {
		return
	}
	parsed, loaded := map[string][]*source{}, map[string]*pkg{}
	for _, in := range incidents {
		dir := cmp.Or(in.Package, ".")
		if parsed[dir] == nil {
			sources, err := parseDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			parsed[dir] = sources
		}
		m, err := in.locate(parsed[dir])
		if err != nil {
			t.Errorf("%s: %v", in.Why, err)
			continue
		}
		if os.Getenv(all) != "all" {
			continue
		}
		if loaded[dir] == nil {
			if loaded[dir], err = load(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
		}
		t.Run(in.Why, func(t *testing.T) { in.kill(t, loaded[dir], m) })
	}
}

// locate finds the place of an incident among the sources of its package.
func (in Incident) locate(sources []*source) (mutant, error) {
	count, err := countStatements(in.Replace)
	if err != nil {
		return mutant{}, fmt.Errorf("field Replace is %w", err)
	}
	want := canonical(in.Replace)
	var found []mutant
	scopes := 0
	for _, s := range sources {
		for _, sc := range s.scopes() {
			if sc.name != in.Func {
				continue
			}
			scopes++
			for _, r := range s.find(sc.node, want, count) {
				m := newMutant(s, sc.name, "incident", r, in.replacement(count))
				found = append(found, m)
			}
		}
	}
	switch {
	case scopes == 0:
		return mutant{}, fmt.Errorf("no function, constant or variable %q in the package", in.Func)
	case len(found) != 1:
		return mutant{}, fmt.Errorf("%s holds %q %d times, want once", in.Func, in.Replace, len(found))
	}
	if _, err := parseSource(token.NewFileSet(), found[0].source.path, found[0].mutated()); err != nil {
		return mutant{}, fmt.Errorf("the mutant does not parse: %w", err)
	}
	return found[0], nil
}

// replacement returns With, in parentheses where an operator beside it would take it apart.
func (in Incident) replacement(count int) string {
	if count > 0 {
		return in.With
	}
	if e, err := parser.ParseExpr(in.With); err == nil {
		if _, ok := e.(*ast.BinaryExpr); ok {
			return "(" + in.With + ")"
		}
	}
	return in.With
}

// kill runs the tests that must fail.
func (in Incident) kill(t *testing.T, p *pkg, m mutant) {
	t.Helper()
	tests := suite{dir: ".", run: in.Run}
	if outcome, detail := tests.try(t.Context(), p, m, incidentLimit); outcome != Killed && outcome != TimedOut {
		t.Errorf("%s: %s: %s %s", in.Run, outcome, m, detail)
	}
}
