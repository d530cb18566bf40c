// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"slices"
	"strings"
)

const whyTier = "make test-system runs the Test functions that call tier.System: make test would leave out what a helper marks, and no run would make it good"

// tierPackage has the mark of tests that need more than the control plane.
const tierPackage = Module + "/internal/tier"

// A SystemTest is a Test function of the system tier.
type SystemTest struct {
	Dir  string // of its package, inside the repository
	Name string
}

// SystemTests lists the Test functions that mark themselves, or a subtest in their body, as tests of the system tier, by package and name.
func SystemTests(t *Tree) []SystemTest {
	var tests []SystemTest
	for _, f := range t.goFiles(mayMark) {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && isPlainTest(f, fn) && len(f.marks(fn)) > 0 {
				tests = append(tests, SystemTest{f.Dir(), fn.Name.Name})
			}
		}
	}
	slices.SortFunc(tests, func(a, b SystemTest) int { return strings.Compare(a.Dir+"."+a.Name, b.Dir+"."+b.Name) })
	return tests
}

// SystemMarks checks that nothing but a Test function marks a test as one of the system tier.
func SystemMarks(t *Tree) []Violation {
	var vs []Violation
	for _, f := range t.goFiles(mayMark) {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && isPlainTest(f, fn) {
				continue
			}
			for _, n := range f.marks(d) {
				vs = append(vs, Violation{f.at(n), "calls tier.System outside of a Test function", whyTier})
			}
		}
	}
	return vs
}

func mayMark(f *File) bool { return f.imported(tierPackage) != "" }

func isPlainTest(f *File, fn *ast.FuncDecl) bool {
	return f.isTest() && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain"
}

// marks gives the places in a declaration that name tier.System: a value of it could be called anywhere.
func (f *File) marks(d ast.Decl) (places []ast.Node) {
	ast.Inspect(d, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && dotted(sel) == f.imported(tierPackage)+".System" {
			places = append(places, n)
		}
		return true
	})
	return places
}
