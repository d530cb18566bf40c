// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"slices"
	"strings"
)

const whyTier = "make test-system runs the Test functions that call tier.System, " +
	"and make proofs those that call tier.LeaveToProofs or tier.RunsWhole: " +
	"make test would leave out what a helper marks, and no run would make it good"

// tierPackage has the marks of tests that make test leaves out.
const tierPackage = Module + "/internal/tier"

// A MarkedTest is a Test function that make test leaves out, or runs in part.
type MarkedTest struct {
	Dir  string // of its package, inside the repository
	Name string
}

// SystemTests lists the Test functions that mark themselves, or a subtest in their body, as tests of the system tier, by package and name.
func SystemTests(t *Tree) []MarkedTest { return t.markedTests(".System") }

// ProofTests lists the Test functions that leave themselves, a subtest in their body or a part of their work to make
// proofs, by package and name.
func ProofTests(t *Tree) []MarkedTest { return t.markedTests(".LeaveToProofs", ".RunsWhole") }

func (t *Tree) markedTests(marks ...string) []MarkedTest {
	var tests []MarkedTest
	for _, f := range t.goFiles(mayMark) {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && isPlainTest(f, fn) && len(f.marks(fn, marks...)) > 0 {
				tests = append(tests, MarkedTest{f.Dir(), fn.Name.Name})
			}
		}
	}
	slices.SortFunc(tests, func(a, b MarkedTest) int { return strings.Compare(a.Dir+"."+a.Name, b.Dir+"."+b.Name) })
	return tests
}

// TierMarks checks that nothing but a Test function leaves a test, or a part of one, to make test-system or make
// proofs.
func TierMarks(t *Tree) []Violation {
	var vs []Violation
	for _, f := range t.goFiles(mayMark) {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && isPlainTest(f, fn) {
				continue
			}
			for _, mark := range []string{".System", ".LeaveToProofs", ".RunsWhole"} {
				for _, n := range f.marks(d, mark) {
					vs = append(vs, Violation{f.at(n), "calls tier" + mark + " outside of a Test function", whyTier})
				}
			}
		}
	}
	return vs
}

func mayMark(f *File) bool { return f.imported(tierPackage) != "" }

func isPlainTest(f *File, fn *ast.FuncDecl) bool {
	return f.isTest() && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain"
}

// marks gives the places in a declaration that name one of these functions of package tier: a value of it could be
// called anywhere.
func (f *File) marks(d ast.Decl, names ...string) (places []ast.Node) {
	ast.Inspect(d, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if ok && slices.Contains(names, "."+sel.Sel.Name) && dotted(sel) == f.imported(tierPackage)+"."+sel.Sel.Name {
			places = append(places, n)
		}
		return true
	})
	return places
}
