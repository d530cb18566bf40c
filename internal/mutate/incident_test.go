// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const anchored = `package a

const limit = 3

type list[T any] struct{ n int }

func (l *list[T]) add(v T) bool {
	if l.n < limit && // the comment does not count
		l.n >= 0 {
		l.n++
		store(
			v,
			true,
		)
		return true
	}
	return false
}

func store(v any, ok bool) { _ = v; _ = ok; _ = ok }
`

// TestIncidentIsAnchored finds an incident by its function and its tokens, and refuses one that stands twice or nowhere.
func TestIncidentIsAnchored(t *testing.T) {
	for _, c := range []struct {
		name string
		in   Incident
		want string // what the mutated source has, or the error
	}{
		{"expression", Incident{Func: "(*list).add", Replace: "l.n < limit && l.n >= 0", With: "l.n >= 0"}, "if (l.n >= 0) {"},
		{"call over lines", Incident{Func: "(*list).add", Replace: "store(v, true)"}, "l.n++\n\t\t\n"},
		{"statements", Incident{Func: "(*list).add", Replace: "l.n++\nstore(v, true)", With: "l.n += 2"}, "\t\tl.n += 2\n\t\treturn true"},
		{"constant", Incident{Func: "limit", Replace: "3", With: "4"}, "const limit = 4"},
		{"parentheses", Incident{Func: "(*list).add", Replace: "l.n >= 0", With: "a || b"}, "(a || b) {"},
		{"renamed function", Incident{Func: "(*list).put", Replace: "l.n >= 0"}, "no function, constant or variable"},
		{"other receiver", Incident{Func: "list.add", Replace: "l.n >= 0"}, "no function, constant or variable"},
		{"twice", Incident{Func: "store", Replace: "_ = ok"}, "2 times, want once"},
		{"nowhere", Incident{Func: "store", Replace: "limit"}, "0 times, want once"},
		{"no program", Incident{Func: "(*list).add", Replace: "l.n >= 0", With: ""}, "does not parse"},
		{"no Go", Incident{Func: "store", Replace: "}{"}, "neither an expression nor statements"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fset := token.NewFileSet()
			first, err := parseSource(fset, "empty.go", "package a\n")
			if err != nil {
				t.Fatal(err)
			}
			s, err := parseSource(fset, "any-name.go", anchored)
			if err != nil {
				t.Fatal(err)
			}
			m, err := c.in.locate([]*source{first, s})
			got := fmt.Sprint(err)
			if err == nil {
				got = m.mutated()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %q in it", got, c.want)
			}
		})
	}
}

// maxIncidents bounds the hand-written mutants of all modules. Everything else is for the operators.
const maxIncidents = 150

// TestIncidentsStayFew counts the incidents of all modules: each has to be worth its place.
func TestIncidentsStayFew(t *testing.T) {
	count := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == "../../internal/mutate" {
			return err
		}
		n, err := countIncidents(path)
		count += n
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if count > maxIncidents {
		t.Errorf("%d hand-written mutants, want at most %d: leave to the operators what stands for no incident and no safety rule", count, maxIncidents)
	}
	t.Logf("%d hand-written mutants", count)
}

func countIncidents(path string) (count int, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return 0, err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			if arr, ok := lit.Type.(*ast.ArrayType); ok && isIncident(arr.Elt) {
				count += len(lit.Elts)
			}
		}
		return true
	})
	return count, nil
}

func isIncident(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Incident"
}

// TestEquivalentsResolve demands of each line of the list that its package has the expression in the function, and that the operator exists.
func TestEquivalentsResolve(t *testing.T) {
	lines := strings.Count(equivalentList, "\n")
	known := equivalents()
	if len(known) != lines {
		t.Errorf("%d of %d lines have five fields", len(known), lines)
	}
	for _, e := range known {
		if err := e.resolve(); err != nil {
			t.Errorf("%s %s %s: %v", e.pkg, e.function, e.operator, err)
		}
	}
}

func (e equivalent) resolve() error {
	if !slices.Contains(operators(), e.operator) {
		return fmt.Errorf("no such operator")
	}
	sources, err := parseDir(filepath.Join("../..", e.pkg))
	if err != nil {
		return err
	}
	count, err := countStatements(e.expr)
	if err != nil {
		return err
	}
	for _, s := range sources {
		for _, sc := range s.scopes() {
			if sc.name == e.function && len(s.find(sc.node, canonical(e.expr), count)) > 0 {
				return nil
			}
		}
	}
	return fmt.Errorf("the function does not hold %q", e.expr)
}
