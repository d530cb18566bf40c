// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// packageOf returns a package of one file that imports nothing.
func packageOf(t *testing.T, text string) *pkg {
	t.Helper()
	p := &pkg{fset: token.NewFileSet()}
	s, err := parseSource(p.fset, "a.go", "package a\n\n"+text)
	if err != nil {
		t.Fatal(err)
	}
	p.sources = []*source{s}
	p.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
	}
	if errs := p.check(p.sources, p.info); len(errs) > 0 {
		t.Fatal(errs[0])
	}
	return p
}

const declarations = `
func call(...any) {}
func fail() error { panic(0) }
var p, q, r bool
var i, j int
`

// TestOperators shows each operator what it changes, and what it leaves alone.
func TestOperators(t *testing.T) {
	for _, c := range []struct {
		name, text string
		operator   string
		want       []string
	}{
		{"condition", "func f() { if p { call() }; for q { call() } }", negateCondition, []string{"p -> !(p)", "q -> !(q)"}},
		{"negated condition", "func f() { if !p { call() } }", negateCondition, []string{"!p -> p"}},
		{"comparison has its operator", "func f() { if i == 1 { call() } }", negateCondition, nil},
		{"and", "func f() bool { return p && q }", swapLogic, []string{"p && q -> ((p) || (q))"}},
		{"or in and", "func f() bool { return (p || q) && r }", swapLogic, []string{"(p || q) && r -> (((p || q)) || (r))", "p || q -> ((p) && (q))"}},
		{"boundary", "func f() (a, b bool) { return i < 1, i >= 2 }", moveBoundary, []string{"i < 1 -> i <= 1", "i >= 2 -> i > 2"}},
		{"equality", "func f() (a, b bool) { return i == 1, i != 2 }", flipEquality, []string{"i == 1 -> i != 1", "i != 2 -> i == 2"}},
		{"call", "func f() { call(1) }", deleteCall, []string{"call(1) -> "}},
		{"assignment", "func f() { i = 1; j++; i += 2; k := 3; _ = k }", deleteAssignment, []string{"i = 1 -> ", "j++ -> ", "i += 2 -> "}},
		{"early return", "func f() (a, b int, err error) { return 0, 0, fail() }", returnEarly,
			[]string{" ->  return *new(int), *new(int), *new(error);"}},
		{"no error to return", "func f() int { return 1 }", returnEarly, nil},
		{"error", "func f() (int, error) { err := fail(); return 1, err }", dropError, []string{"err -> nil"}},
		{"error of a call", "func f() error { return fail() }", dropError, []string{"return fail() -> { _ = fail(); return nil }"}},
		{"nil error", "func f() (int, error) { return 1, nil }", dropError, nil},
		{"calls in order", "func f() { call(1); call(2) }", swapStatements, []string{"call(1); call(2) -> call(2); call(1)"}},
		{"written and read", "func f() { i = 1; j = i }", swapStatements, []string{"i = 1; j = i -> j = i; i = 1"}},
		{"independent", "func f() { i = 1; j = 2 }", swapStatements, nil},
		{"constant", "func f() int { return 5 }", changeConstant, []string{"5 -> 0", "5 -> 6"}},
		{"zero", "const c = 0", changeConstant, []string{"0 -> 1"}},
		{"length", "func f(a [5]int) {}", changeConstant, nil},
		{"boolean", "func f() (a, b bool) { return true, false }", flipBoolean, []string{"true -> false", "false -> true"}},
		{"name of a boolean", "func f() bool { true := p; return true }", flipBoolean, nil},
		{"defer", "func f() { defer call() }", dropDefer, []string{"defer call() -> "}},
		{"branches", "func f() { for { if p { continue }; break } }", dropBranch, []string{"continue -> ", "break -> "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			p := packageOf(t, c.text+declarations)
			for _, m := range p.generate() {
				inText := m.start < len("package a\n\n")+len(c.text)
				if m.operator == c.operator && inText {
					got = append(got, p.sources[0].text[m.start:m.end]+" -> "+m.with)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s of %s: got %q, want %q", c.operator, c.text, got, c.want)
			}
		})
	}
}

// TestEveryOperatorMakesPrograms demands that each operator makes mutants that compile: a table that knows an operator only by name proves nothing.
func TestEveryOperatorMakesPrograms(t *testing.T) {
	p := packageOf(t, `
func f() (n int, err error) {
	defer call()
	for _, k := range []int{1, 2} {
		if k < 2 && k != 5 || !p {
			continue
		}
		n = k
		call(n)
		call(true)
	}
	return n, fail()
}`+declarations)
	compiled := map[string]int{}
	for _, m := range p.generate() {
		if _, err := p.repair(m); err == nil {
			compiled[m.operator]++
		}
	}
	for _, op := range operators() {
		if compiled[op] == 0 {
			t.Errorf("no mutant of %s compiles", op)
		}
	}
}

// A mutant that leaves a variable unused is a program all the same; one with a type error is none.
func TestRepair(t *testing.T) {
	p := packageOf(t, `
func f() {
	a := i
	b, c := 1, 2
	call(a)
	if d := j; p {
		call(d)
	}
	switch e := j; {
	case p:
		call(e)
	}
	for range 2 {
		call(b, c)
	}
}`+declarations)
	calls := 0
	for _, m := range p.generate() {
		if m.operator != deleteCall || m.function != "f" {
			continue
		}
		calls++
		text, err := p.repair(m)
		if err != nil {
			t.Errorf("%s: %v", m, err)
		}
		if strings.Count(text, "\n") != strings.Count(p.sources[0].text, "\n") {
			t.Errorf("%s: lines were moved: %s", m, text)
		}
	}
	if calls != 4 {
		t.Errorf("%d calls were deleted, want 4", calls)
	}
	wrong := newMutant(p.sources[0], "f", "incident", spanOf(p.sources[0].file.Decls[0].(*ast.FuncDecl).Body), `{ i = "no number" }`)
	if _, err := p.repair(wrong); err == nil {
		t.Error("a mutant with a type error is taken for a program")
	}
}

func TestDrawIsDeterministic(t *testing.T) {
	mutants := make([]mutant, 100)
	for i := range mutants {
		mutants[i].line = i
	}
	lines := func(seed uint64) (l []int) {
		for _, m := range draw(slices.Clone(mutants), 10, seed) {
			l = append(l, m.line)
		}
		return l
	}
	if a, b := lines(1), lines(1); !slices.Equal(a, b) || len(a) != 10 || !slices.IsSorted(a) {
		t.Errorf("seed 1 draws %v and %v, want the same ten in order", a, b)
	}
	if slices.Equal(lines(1), lines(2)) {
		t.Error("seeds 1 and 2 draw the same mutants")
	}
}
