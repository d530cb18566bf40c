// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	whyDoc     = "a package has one comment, in doc.go, so that a reader and a writer know where to find it"
	whyLicence = "each file says who holds it and under which licence, also when it is read alone"
	whyExample = "a runnable Example with an Output comment is the first thing a user copies, and go test keeps it true"
	whySize    = "a file of one noun and a function of one thought fit on a page; beyond that nobody reviews them"
	whyTop     = "the top level is settled by the design; a new package goes below one of its directories"
	whyMains   = "an example is read before it is copied: small files, and a test that it works"
	whyWords   = "the repository speaks of the project alone: it names no machine and no one's workplace"
)

// PackageComments checks that every package has its comment in doc.go, in the usual form, and nowhere else.
func PackageComments(t *Tree) []Violation {
	var vs []Violation
	t.eachDir(func(dir string, files []*File) {
		documented := false
		for _, f := range files {
			text := ""
			if f.AST.Doc != nil {
				text = f.AST.Doc.Text()
			}
			switch isDoc := path.Base(f.Path) == "doc.go"; {
			case isDoc && !opens(text, f):
				vs = append(vs, Violation{f.Path, fmt.Sprintf("package comment does not begin with %q", opening(f)), whyDoc})
			case !isDoc && text != "":
				vs = append(vs, Violation{f.Path, "has a package comment", whyDoc})
			}
			documented = documented || path.Base(f.Path) == "doc.go"
		}
		if !documented {
			vs = append(vs, Violation{dir, "has no doc.go", whyDoc})
		}
	})
	return vs
}

func opening(f *File) string {
	if f.isMain() {
		return "Command " + path.Base(f.Dir())
	}
	return "Package " + f.pkg()
}

func opens(text string, f *File) bool {
	return strings.HasPrefix(text, opening(f)+" ") || strings.HasPrefix(text, opening(f)+"\n")
}

var licensed = regexp.MustCompile(`(\.go|\.sh|\.bash|Makefile|\.mk|Dockerfile|\.ci/run)$`)

// LicenceHeaders checks the first two lines of every Go, shell, make and Docker file. A script's first line may come before
// them, and in a generated file the build constraint.
func LicenceHeaders(t *Tree) []Violation {
	var vs []Violation
	for _, f := range t.Files {
		shebang := bytes.HasPrefix(f.Text, []byte("#!"))
		if !licensed.MatchString(f.Path) && !shebang {
			continue
		}
		mark, text := "#", f.Text
		if f.isGo() {
			mark = "//"
		}
		if f.isGenerated() && bytes.HasPrefix(text, []byte("//go:build ")) {
			_, text, _ = bytes.Cut(text, []byte("\n\n"))
		}
		if shebang {
			_, text, _ = bytes.Cut(text, []byte("\n"))
		}
		want := mark + " Copyright The belay Authors.\n" + mark + " SPDX-License-Identifier: Apache-2.0\n\n"
		if !bytes.HasPrefix(text, []byte(want)) {
			vs = append(vs, Violation{f.Path, "does not begin with the two lines of the licence header and a blank one", whyLicence})
		}
	}
	return vs
}

// RunnableExamples checks that every public package that exports something has an Example with an Output comment, in an
// external test package. Test kits may do without.
func RunnableExamples(t *Tree) []Violation {
	var vs []Violation
	t.eachDir(func(dir string, files []*File) {
		exempt := !isPublicRoot(rootOf(dir)) || isInternal(dir) || isKit(dir)
		if !exempt && exports(files) && !hasExample(files) {
			vs = append(vs, Violation{dir, "has no Example with an Output comment in package " + files[0].pkg() + "_test", whyExample})
		}
	})
	return vs
}

func exports(files []*File) bool {
	for _, f := range files {
		if f.isTest() || f.isMain() {
			continue
		}
		if slices.ContainsFunc(f.AST.Decls, isExported) {
			return true
		}
	}
	return false
}

func isExported(d ast.Decl) bool {
	if fn, ok := d.(*ast.FuncDecl); ok {
		return fn.Recv == nil && fn.Name.IsExported()
	}
	return slices.ContainsFunc(d.(*ast.GenDecl).Specs, func(s ast.Spec) bool {
		switch s := s.(type) {
		case *ast.TypeSpec:
			return s.Name.IsExported()
		case *ast.ValueSpec:
			return slices.ContainsFunc(s.Names, (*ast.Ident).IsExported)
		}
		return false
	})
}

func hasExample(files []*File) bool {
	for _, f := range files {
		if !f.isTest() || f.AST.Name.Name != f.pkg()+"_test" {
			continue
		}
		for _, e := range doc.Examples(f.AST) {
			if e.Output != "" || e.EmptyOutput {
				return true
			}
		}
	}
	return false
}

const (
	maxFunc    = 60
	maxFile    = 400
	maxExample = 300
	maxAppMain = 30
)

// Sizes checks the length of every function and file that is not generated. The rows of a table in a test do not count as lines of its function.
func Sizes(t *Tree) []Violation {
	var vs []Violation
	for _, f := range t.goFiles(func(f *File) bool { return !f.isGenerated() }) {
		if f.lines > maxFile {
			vs = append(vs, Violation{f.Path, fmt.Sprintf("has %d lines, at most %d", f.lines, maxFile), whySize})
		}
		for _, d := range f.AST.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := f.linesOf(fn) - f.linesOfTables(fn); n > maxFunc {
				vs = append(vs, Violation{f.at(fn), fmt.Sprintf("function %s has %d lines, at most %d", fn.Name.Name, n, maxFunc), whySize})
			}
		}
	}
	return vs
}

// linesOf gives how many lines a part of the file takes.
func (f *File) linesOf(n ast.Node) int {
	return f.Fset.Position(n.End()).Line - f.Fset.Position(n.Pos()).Line + 1
}

// linesOfTables gives how many lines the tables of a test take beyond their first: a table is data, and is read row by row.
func (f *File) linesOfTables(fn *ast.FuncDecl) (lines int) {
	if !f.isTest() {
		return 0
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		table, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		switch table.Type.(type) {
		case *ast.ArrayType, *ast.MapType:
			lines += f.linesOf(table) - 1
			return false
		}
		return true
	})
	return lines
}

// TopLevel checks that Go packages stand only in the directories that the design lists.
func TopLevel(t *Tree) []Violation {
	var vs []Violation
	t.eachDir(func(dir string, _ []*File) {
		if !mayHoldPackages(rootOf(dir)) {
			vs = append(vs, Violation{dir, "is a Go package outside the directories of the design", whyTop})
		}
	})
	return vs
}

// ExampleMains checks that every main under examples is short and has a test. Those under internal serve tests and benchmarks. The main of an
// app, which has a package app below it, has at most 30 lines, and its test is there.
func ExampleMains(t *Tree) []Violation {
	var vs []Violation
	apps := map[string]bool{} // by the directory of its main: whether there is a test
	t.eachDir(func(dir string, files []*File) {
		if path.Base(dir) == "app" {
			apps[path.Dir(dir)] = slices.ContainsFunc(files, (*File).isTest)
		}
	})
	t.eachDir(func(dir string, files []*File) {
		if !within(dir, "examples") || isInternal(dir) || !slices.ContainsFunc(files, (*File).isMain) {
			return
		}
		tested, isApp := apps[dir]
		for _, f := range files {
			limit := maxExample
			if isApp && path.Base(f.Path) == "main.go" {
				limit = maxAppMain
			}
			tested = tested || f.isTest()
			if !f.isTest() && f.lines > limit {
				vs = append(vs, Violation{f.Path, fmt.Sprintf("has %d lines, at most %d", f.lines, limit), whyMains})
			}
		}
		if !tested {
			vs = append(vs, Violation{dir, "has no test", whyMains})
		}
	})
	return vs
}
