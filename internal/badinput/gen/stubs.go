// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"go/types"
	"strings"
)

// addStubs writes the constructor of a stub for each exported interface that other packages can implement, and returns
// the interfaces.
func (w *writer) addStubs(rels []string, packages map[string]*types.Package) []types.Type {
	var stubs []types.Type
	for _, rel := range rels {
		pkg := packages[rel]
		for _, name := range pkg.Scope().Names() {
			named := lookupNamed(pkg, name)
			if named == nil || !types.IsInterface(named) || !canImplement(named) {
				continue
			}
			w.print("reflect.TypeFor[%s.%s%s](): func(s *badinput.Scope) any { return stub%d{s} },\n",
				w.qualifyPackage(pkg), name, typeArguments(named.TypeParams()), len(stubs))
			stubs = append(stubs, withStrings(named))
		}
	}
	return stubs
}

// canImplement reports whether all methods of an interface are exported. One without methods needs no stub.
func canImplement(t types.Type) bool {
	iface := t.Underlying().(*types.Interface)
	for m := range iface.Methods() {
		if !m.Exported() {
			return false
		}
	}
	return iface.NumMethods() > 0
}

// withStrings has a generic type with string in the place of each type argument.
func withStrings(named *types.Named) types.Type {
	n := named.TypeParams().Len()
	if n == 0 {
		return named
	}
	args := make([]types.Type, n)
	for i := range args {
		args[i] = types.Typ[types.String]
	}
	instance, _ := types.Instantiate(nil, named, args, false) // it has an error only where it validates
	return instance
}

// addStubType writes a stub of an interface.
func (w *writer) addStubType(number int, t types.Type) {
	w.print("\ntype stub%d struct{ s *badinput.Scope }\n", number)
	iface := t.Underlying().(*types.Interface)
	for m := range iface.Methods() {
		sig := m.Signature()
		params := w.listVars(sig.Params(), "p", sig.Variadic())
		if sig.Results().Len() == 0 {
			w.print("\nfunc (x stub%d) %s(%s) {}\n", number, m.Name(), params)
			continue
		}
		var pointers []string
		for i := range sig.Results().Len() {
			pointers = append(pointers, fmt.Sprintf("&r%d", i))
		}
		w.print("\nfunc (x stub%d) %s(%s) (%s) {\n\tbadinput.SetAnswer(x.s, %s)\n\treturn\n}\n",
			number, m.Name(), params, w.listVars(sig.Results(), "r", false), strings.Join(pointers, ", "))
	}
}

// listVars writes parameters or results with their types.
func (w *writer) listVars(vars *types.Tuple, prefix string, variadic bool) string {
	var out []string
	for i := range vars.Len() {
		text := types.TypeString(vars.At(i).Type(), w.qualifyPackage)
		if variadic && i == vars.Len()-1 {
			text = "..." + strings.TrimPrefix(text, "[]")
		}
		out = append(out, fmt.Sprintf("%s%d %s", prefix, i, text))
	}
	return strings.Join(out, ", ")
}
