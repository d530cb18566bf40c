// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Test is a Test, Fuzz, Benchmark or Example function, and the requirements that it speaks of.
type Test struct {
	Name   string   // package path inside the module, a dot, the function's name
	Claims []string // named in its name or its doc comment
	Body   []string // named in a comment or a string of its body, or in the test data that its body names
}

func (t Test) mentions(id string) bool {
	return slices.Contains(t.Claims, id) || slices.Contains(t.Body, id)
}

// Tests finds the test functions of the tree. Those of this package speak of requirements only as examples and are left out.
func Tests(t *Tree) []Test {
	var tests []Test
	for _, f := range t.goFiles(speaks) {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && isTestFunc(fn) {
				tests = append(tests, t.readTest(f, fn))
			}
		}
	}
	return tests
}

// Mentions gives every requirement that a test file of the tree speaks of, with one place where it does.
func Mentions(t *Tree) map[string]string {
	where := map[string]string{}
	for _, f := range t.goFiles(speaks) {
		for i, line := range strings.Split(string(f.Text), "\n") {
			for _, id := range ids(line) {
				where[id] = fmt.Sprintf("%s:%d", f.Path, i+1)
			}
		}
	}
	return where
}

func speaks(f *File) bool { return f.isTest() && !within(f.Dir(), "internal/archtest") }

func isTestFunc(fn *ast.FuncDecl) bool {
	kinds := []string{"Test", "Fuzz", "Benchmark", "Example"}
	return fn.Recv == nil && slices.ContainsFunc(kinds, func(k string) bool { return strings.HasPrefix(fn.Name.Name, k) })
}

func (t *Tree) readTest(f *File, fn *ast.FuncDecl) Test {
	test := Test{Name: strings.TrimPrefix(f.Dir()+"."+fn.Name.Name, "./"), Claims: ids(fn.Name.Name)}
	if fn.Doc != nil {
		test.Claims = append(test.Claims, ids(fn.Doc.Text())...)
	}
	if fn.Body != nil {
		from, to := f.Fset.Position(fn.Body.Pos()).Offset, f.Fset.Position(fn.Body.End()).Offset
		body := string(f.Text[from:to])
		test.Body = append(ids(body), t.idsInData(f.Dir(), body)...)
	}
	return test
}

// dataName is a string that begins with testdata/, up to what a pattern leaves open.
var dataName = regexp.MustCompile("[\"`](testdata/[^\"`*?\\[]*)")

// idsInData gives the requirements that the files say of themselves which a test function of dir reads from testdata.
func (t *Tree) idsInData(dir, body string) []string {
	var found []string
	for _, m := range dataName.FindAllStringSubmatch(body, -1) {
		for _, f := range t.Data {
			if strings.HasPrefix(f.Path, path.Join(dir, m[1])) {
				found = append(found, ids(string(f.Text))...)
			}
		}
	}
	return found
}

var (
	idForm   = regexp.MustCompile(`([RLS])[-_](CS|DR|RO|MA|ID|AU)[-_](\d{2,3})((?:(?:\.\.|…|–|/| to )(?:[RLS]-[A-Z]{2}-)?\d{2,3})*)`)
	idLesson = regexp.MustCompile(`\bC-(\d{2})\b`)
	idFollow = regexp.MustCompile(`(\.\.|…|–|/| to )(?:[RLS]-[A-Z]{2}-)?(\d{2,3})`)
)

// ids gives the requirements, lessons and threats named in a text, each once, in order: R-CS-13, R_CS_13, L-CS-04, ranges as R-CS-62..64,
// R-CS-76…81 or R-CS-62 to R-CS-64, and further numbers as R-CS-79/80. C-04 is short for L-CS-04.
func ids(text string) []string {
	var found []string
	for _, m := range idForm.FindAllStringSubmatch(text, -1) {
		last := number(m[3])
		numbers := []int{last}
		for _, next := range idFollow.FindAllStringSubmatch(m[4], -1) {
			n := number(next[2])
			for from := last + 1; next[1] != "/" && from < n; from++ {
				numbers = append(numbers, from)
			}
			numbers, last = append(numbers, n), n
		}
		for _, n := range numbers {
			found = append(found, fmt.Sprintf("%s-%s-%02d", m[1], m[2], n))
		}
	}
	for _, m := range idLesson.FindAllStringSubmatch(text, -1) {
		found = append(found, "L-CS-"+m[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// number reads up to three digits, which the pattern has seen already.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
