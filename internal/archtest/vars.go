// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

const whyVars = "mutable package state makes two users of the package in one process depend on each other; pass it, or make it a constant or a function"

// fixed are the functions whose results nobody changes.
var fixed = []string{
	"errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer", "template.Must", "resource.MustParse", "semver.MustParse",
}

// fixedTypes are the struct types that API packages declare as exported variables by convention.
var fixedTypes = []string{"schema.GroupVersion", "schema.GroupVersionKind", "schema.GroupVersionResource", "schema.GroupResource", "schema.GroupKind"}

// PackageVars checks that package-level variables are constant in all but name: interface assertions, embedded files,
// sentinel errors, results of functions known to be fixed, and unexported tables and functions that no file of the package
// writes to, tests included.
func PackageVars(t *Tree) []Violation {
	var vs []Violation
	t.eachDir(func(_ string, files []*File) {
		written := writes(files)
		for _, f := range files {
			if f.isTest() || f.isGenerated() {
				continue
			}
			for _, d := range f.AST.Decls {
				if gen, ok := d.(*ast.GenDecl); ok && gen.Tok == token.VAR {
					vs = append(vs, varsIn(f, gen, written)...)
				}
			}
		}
	})
	return vs
}

func varsIn(f *File, gen *ast.GenDecl, written map[string]bool) []Violation {
	var vs []Violation
	for _, s := range gen.Specs {
		spec := s.(*ast.ValueSpec)
		embedded := embeds(gen.Doc) || embeds(spec.Doc)
		for i, name := range spec.Names {
			var value ast.Expr
			if i < len(spec.Values) {
				value = spec.Values[i]
			}
			switch {
			case name.Name == "_", links(gen.Doc) && isInternal(f.Dir()):
			case written[name.Name]:
				vs = append(vs, Violation{f.at(name), fmt.Sprintf("package variable %s is written to", name.Name), whyVars})
			case !embedded && !isFixed(name, value):
				vs = append(vs, Violation{f.at(name), fmt.Sprintf("package variable %s may change", name.Name), whyVars})
			}
		}
	}
	return vs
}

func embeds(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// links reports whether a variable is that of another package, which a go:linkname directive names: its state is there.
func links(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:linkname ") })
}

func isFixed(name *ast.Ident, value ast.Expr) bool {
	if pointer, ok := value.(*ast.UnaryExpr); ok {
		_, literal := pointer.X.(*ast.CompositeLit)
		return literal && strings.HasPrefix(strings.ToLower(name.Name), "err")
	}
	switch v := value.(type) {
	case *ast.CallExpr:
		return slices.Contains(fixed, dotted(v.Fun)) || !name.IsExported() && namesResource(v)
	case *ast.CompositeLit:
		return !name.IsExported() || slices.Contains(fixedTypes, dotted(v.Type))
	case *ast.FuncLit:
		return !name.IsExported()
	}
	return false
}

// namesResource reports whether a call names a resource or kind of an API group: corev1.SchemeGroupVersion.WithResource("pods").
func namesResource(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (sel.Sel.Name == "WithResource" || sel.Sel.Name == "WithKind")
}

// dotted gives pkg.Name for a selector on an identifier, else "".
func dotted(e ast.Expr) string {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok {
			return x.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

// writes gives the names that some function of the files may change: assigned to, incremented, deleted from, or taken the
// address of. It goes by name alone, without scopes, but for names that the function itself declares.
func writes(files []*File) map[string]bool {
	written := map[string]bool{}
	for _, f := range files {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				writesIn(fn, written)
			}
		}
	}
	return written
}

func writesIn(fn *ast.FuncDecl, written map[string]bool) {
	local := declared(fn)
	mark := func(e ast.Expr) {
		if id := rootIdent(e); id != nil && !local[id.Name] {
			written[id.Name] = true
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				mark(l)
			}
		case *ast.IncDecStmt:
			mark(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				mark(n.X)
			}
		case *ast.CallExpr:
			if isBuiltin(n, "delete") || isBuiltin(n, "clear") {
				mark(n.Args[0])
			}
		}
		return true
	})
}

// declared gives the names that a function declares anywhere: receiver, parameters, results, variables.
func declared(fn *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, l := range n.Lhs {
					if id, ok := l.(*ast.Ident); ok {
						names[id.Name] = true
					}
				}
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					names[id.Name] = true
				}
			}
		}
		return true
	})
	return names
}

// rootIdent gives the variable that an expression such as a.b[i].c starts from. Through a call nothing is known.
func rootIdent(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}
