// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"slices"
)

const (
	whySleep = "a sleep cannot be cancelled and makes tests slow or flaky: wait on a context, a timer or testing/synctest"
	whyExit  = "a library returns; only a main ends the process, so that an embedder keeps control and deferred work runs"
	whyInit  = "importing a package must do nothing: no registration, no hidden order"
	whyPanic = "no input may bring down the process that embeds the library: return an error"
)

// exits are the calls that end the process, by import path.
var exits = map[string][]string{
	"os":             {"Exit"},
	"syscall":        {"Exit"},
	"log":            {"Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"},
	"k8s.io/klog/v2": {"Fatal", "Fatalf", "Fatalln", "FatalDepth", "Exit", "Exitf", "Exitln", "ExitDepth"},
}

// Calls checks for what library code may not do: sleep, end the process, panic, and run at import. Mains may sleep and
// exit; tests may exit, since a test binary is a process of its own, and sleep in a function that uses testing/synctest;
// test kits may panic, to stop the code under test in the middle.
func Calls(t *Tree) []Violation {
	var vs []Violation
	for _, f := range t.goFiles(func(f *File) bool { return !f.isGenerated() }) {
		for _, d := range f.AST.Decls {
			vs = append(vs, callsIn(f, d)...)
		}
	}
	return vs
}

func callsIn(f *File, d ast.Decl) []Violation {
	var vs []Violation
	if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
		vs = append(vs, Violation{f.at(d), "declares init", whyInit})
	}
	virtual := uses(d, f.imported("testing/synctest"))
	ast.Inspect(d, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch {
		case f.calls(call, "time", "Sleep") && !f.isMain() && !virtual:
			vs = append(vs, Violation{f.at(n), "calls time.Sleep", whySleep})
		case isBuiltin(call, "panic") && !f.isMain() && !f.isTest() && !isKit(f.Dir()):
			vs = append(vs, Violation{f.at(n), "calls panic", whyPanic})
		case f.exits(call) && !f.isMain() && !f.isTest():
			vs = append(vs, Violation{f.at(n), fmt.Sprintf("calls %s, which ends the process", printed(call)), whyExit})
		}
		return true
	})
	return vs
}

// calls reports whether a call is one of the named functions of an imported package.
func (f *File) calls(call *ast.CallExpr, importPath string, names ...string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok || x.Name != f.imported(importPath) {
		return false
	}
	return slices.Contains(names, sel.Sel.Name)
}

func (f *File) exits(call *ast.CallExpr) bool {
	for importPath, names := range exits {
		if f.calls(call, importPath, names...) {
			return true
		}
	}
	return false
}

// printed gives a call of an imported function as it is written: os.Exit.
func printed(call *ast.CallExpr) string {
	sel := call.Fun.(*ast.SelectorExpr)
	return sel.X.(*ast.Ident).Name + "." + sel.Sel.Name
}

func isBuiltin(call *ast.CallExpr, name string) bool {
	id, ok := call.Fun.(*ast.Ident)
	return ok && id.Name == name
}

// uses reports whether a declaration names an imported package.
func uses(d ast.Decl, name string) bool {
	found := false
	ast.Inspect(d, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && name != "" && id.Name == name
		return !found
	})
	return found
}
