// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package apilist

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/belayproject/belay/internal/archtest"
)

// A lister writes the lines of one package.
type lister struct {
	pkg   *types.Package
	lines []string
}

// Lines gives one line per exported name of a package, sorted.
func Lines(pkg *types.Package) []string {
	l := &lister{pkg: pkg}
	for _, name := range pkg.Scope().Names() {
		switch obj := pkg.Scope().Lookup(name).(type) {
		case *types.Const:
			l.add(obj, "const %s = %s", strings.TrimSuffix(name+" "+l.constType(obj), " "), obj.Val().ExactString())
		case *types.Var:
			l.add(obj, "var %s %s", name, l.typ(obj.Type()))
		case *types.Func:
			l.add(obj, "func %s%s", name, l.signature(obj))
		case *types.TypeName:
			l.addType(obj)
		}
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines)
}

func (l *lister) add(obj types.Object, format string, args ...any) {
	if obj.Exported() {
		l.lines = append(l.lines, fmt.Sprintf(format, args...))
	}
}

// constType gives the type of a constant that has one.
func (l *lister) constType(c *types.Const) string {
	if b, ok := c.Type().(*types.Basic); ok && b.Info()&types.IsUntyped != 0 {
		return ""
	}
	return l.typ(c.Type())
}

func (l *lister) addType(obj *types.TypeName) {
	if !obj.Exported() {
		return
	}
	if obj.IsAlias() {
		l.add(obj, "type %s = %s", obj.Name(), l.typ(types.Unalias(obj.Type())))
		return
	}
	head := "type " + obj.Name()
	if named, ok := obj.Type().(*types.Named); ok {
		head += l.typeParams(named.TypeParams())
	}
	switch under := obj.Type().Underlying().(type) {
	case *types.Struct:
		l.lines = append(l.lines, head+" struct")
		l.addFields(head+" struct, ", under)
	case *types.Interface:
		l.addInterface(head+" interface", under)
		return
	default:
		l.lines = append(l.lines, head+" "+l.typ(under))
	}
	for sel := range types.NewMethodSet(types.NewPointer(obj.Type())).Methods() {
		if fn := sel.Obj().(*types.Func); len(sel.Index()) == 1 || isHidden(obj.Type(), sel.Index()) {
			l.add(fn, "method (%s) %s%s", l.receiver(obj, fn), fn.Name(), l.signature(fn))
		}
	}
}

// addFields lists the exported fields of a struct, and those that an embedded unexported struct lends it.
func (l *lister) addFields(head string, s *types.Struct) {
	for f := range s.Fields() {
		switch inner, isStruct := f.Type().Underlying().(*types.Struct); {
		case f.Embedded() && !f.Exported() && isStruct:
			l.addFields(head, inner)
		case f.Embedded():
			l.add(f, "%sembedded %s", head, l.typ(f.Type()))
		default:
			l.add(f, "%s%s %s", head, f.Name(), l.typ(f.Type()))
		}
	}
}

func (l *lister) addInterface(head string, i *types.Interface) {
	var names []string
	unexported := false
	for m := range i.Methods() {
		unexported = unexported || !m.Exported()
		if m.Exported() {
			names = append(names, m.Name())
			l.add(m, "%s, %s%s", head, m.Name(), l.signature(m))
		}
	}
	if unexported {
		names = append(names, "unexported methods")
	}
	if !i.IsMethodSet() {
		l.lines = append(l.lines, head+" "+strings.TrimPrefix(l.typ(i), "interface"))
		return
	}
	l.lines = append(l.lines, head+" { "+strings.Join(names, ", ")+" }")
}

// receiver gives the type as which a method is callable: the pointer where only it has the method.
func (l *lister) receiver(obj *types.TypeName, fn *types.Func) string {
	if types.NewMethodSet(obj.Type()).Lookup(fn.Pkg(), fn.Name()) == nil {
		return "*" + obj.Name()
	}
	return obj.Name()
}

// signature gives parameters and results by their types alone: a name may change without harm.
func (l *lister) signature(fn *types.Func) string {
	sig := fn.Signature()
	text := l.typ(types.NewSignatureType(nil, nil, nil, unnamed(sig.Params()), unnamed(sig.Results()), sig.Variadic()))
	return l.typeParams(sig.TypeParams()) + strings.TrimPrefix(text, "func")
}

func (l *lister) typeParams(params *types.TypeParamList) string {
	if params.Len() == 0 {
		return ""
	}
	var texts []string
	for p := range params.TypeParams() {
		texts = append(texts, p.Obj().Name()+" "+l.typ(p.Constraint()))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (l *lister) typ(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == l.pkg {
			return ""
		}
		return strings.TrimPrefix(p.Path(), archtest.Module+"/")
	})
}

func unnamed(vars *types.Tuple) *types.Tuple {
	var out []*types.Var
	for v := range vars.Variables() {
		out = append(out, types.NewParam(v.Pos(), v.Pkg(), "", v.Type()))
	}
	return types.NewTuple(out...)
}

// isHidden reports whether a promoted method comes through unexported embedded fields alone, so that no listed field shows it.
func isHidden(t types.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		s, ok := t.Underlying().(*types.Struct)
		if !ok || s.Field(i).Exported() {
			return false
		}
		t = s.Field(i).Type()
	}
	return true
}
