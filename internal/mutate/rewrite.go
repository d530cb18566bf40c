// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// A source is a parsed file.
type source struct {
	text string
	fset *token.FileSet
	file *ast.File
}

func parse(text string) (source, error) {
	s := source{text: text, fset: token.NewFileSet()}
	var err error
	s.file, err = parser.ParseFile(s.fset, "", text, parser.SkipObjectResolution)
	return s, err
}

// of gives the text of a part, and nothing for none.
func (s source) of(from, to token.Pos) string {
	return s.text[s.fset.Position(from).Offset:s.fset.Position(to).Offset]
}

func (s source) node(n ast.Node) string { return s.of(n.Pos(), n.End()) }

// changed gives the places, among the declarations of the file, of functions that another version of it has in another way. ok is false if the
// other version cannot stand beside this one: it differs in more than bodies of functions, or in one that a function in between would change.
func (s source) changed(other source) (at []int, ok bool) {
	if len(s.file.Decls) != len(other.file.Decls) {
		return nil, false
	}
	for i, d := range s.file.Decls {
		o := other.file.Decls[i]
		if s.node(d) == other.node(o) {
			continue
		}
		before, isFunc := d.(*ast.FuncDecl)
		after, same := o.(*ast.FuncDecl)
		if !isFunc || !same || !s.divisible(before) || !other.divisible(after) || s.head(before) != other.head(after) {
			return nil, false
		}
		at = append(at, i)
	}
	return at, len(at) > 0
}

// head is everything of a function but its body.
func (s source) head(f *ast.FuncDecl) string { return s.of(f.Pos(), f.Body.Pos()) }

// divisible reports whether one function that calls another can stand for f: not if it may recover from a panic, which is for the function that
// was deferred itself.
func (s source) divisible(f *ast.FuncDecl) bool {
	return f.Body != nil && f.Name.Name != "_" && !strings.Contains(s.node(f), "recover()")
}

// selector is the variable that says which version of a function runs.
const selector = "belayMutant"

// with gives the file with other versions of some of its functions: by the place of the function, and by the number that chooses the version.
func (s source) with(versions map[int]map[int]string) string {
	var b strings.Builder
	end := s.file.FileStart
	for i, d := range s.file.Decls {
		if versions[i] == nil {
			continue
		}
		f := d.(*ast.FuncDecl)
		b.WriteString(s.of(end, f.Pos()) + s.choice(f, versions[i]) + "\n\n" + s.version(f, 0))
		for _, n := range sortedKeys(versions[i]) {
			b.WriteString("\n\n" + versions[i][n])
		}
		end = f.End()
	}
	return b.String() + s.text[s.fset.Position(end).Offset:]
}

// version is the function under the name that number n has.
func (s source) version(f *ast.FuncDecl, n int) string {
	return s.of(f.Pos(), f.Name.Pos()) + versionName(f, n) + s.of(f.Name.End(), f.End())
}

func versionName(f *ast.FuncDecl, n int) string { return fmt.Sprintf("%s_mutant%d", f.Name.Name, n) }

// choice is a function with the name of f that calls the version that is chosen, or number 0.
func (s source) choice(f *ast.FuncDecl, versions map[int]string) string {
	params, args := s.params(f.Type.Params)
	typeParams, typeArgs := s.typeParams(f.Type.TypeParams)
	receiver, on := "", ""
	if f.Recv != nil {
		receiver, on = "(self "+s.node(f.Recv.List[0].Type)+") ", "self."
	}
	results, call := "", "\t%s%s%s(%s)\n\treturn\n"
	if f.Type.Results != nil {
		results, call = "("+s.types(f.Type.Results)+") ", "\treturn %s%s%s(%s)\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "func %s%s%s(%s) %s{\n\tswitch %s {\n", receiver, f.Name.Name, typeParams, params, results, selector)
	for _, n := range sortedKeys(versions) {
		fmt.Fprintf(&b, "\tcase %d:\n\t"+call, n, on, versionName(f, n), typeArgs, args)
	}
	fmt.Fprintf(&b, "\t}\n"+call+"}", on, versionName(f, 0), typeArgs, args)
	return b.String()
}

// typeParams gives the type parameters, and the type arguments that pass them on.
func (s source) typeParams(list *ast.FieldList) (params, args string) {
	if list == nil {
		return "", ""
	}
	var names []string
	for _, field := range list.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return s.node(list), "[" + strings.Join(names, ", ") + "]"
}

// params gives the parameters with names of their own, and the arguments of a call that passes them on.
func (s source) params(list *ast.FieldList) (params, args string) {
	var ps, as []string
	for _, field := range list.List {
		for range max(1, len(field.Names)) {
			name := fmt.Sprintf("mutantArg%d", len(ps))
			ps = append(ps, name+" "+s.node(field.Type))
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				name += "..."
			}
			as = append(as, name)
		}
	}
	return strings.Join(ps, ", "), strings.Join(as, ", ")
}

// types gives the types of results, without their names.
func (s source) types(list *ast.FieldList) string {
	var types []string
	for _, field := range list.List {
		for range max(1, len(field.Names)) {
			types = append(types, s.node(field.Type))
		}
	}
	return strings.Join(types, ", ")
}
