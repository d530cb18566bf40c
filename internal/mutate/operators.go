// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strconv"
)

// The operators, by the names that reports and the list of equivalent mutants have.
const (
	negateCondition  = "negate-condition"
	swapLogic        = "swap-logic"
	moveBoundary     = "move-boundary"
	flipEquality     = "flip-equality"
	deleteCall       = "delete-call"
	deleteAssignment = "delete-assignment"
	returnEarly      = "return-early"
	dropError        = "drop-error"
	swapStatements   = "swap-statements"
	changeConstant   = "change-constant"
	flipBoolean      = "flip-boolean"
	dropDefer        = "drop-defer"
	dropBranch       = "drop-branch"
)

func operators() []string {
	return []string{
		negateCondition, swapLogic, moveBoundary, flipEquality, deleteCall, deleteAssignment, returnEarly, dropError, swapStatements,
		changeConstant, flipBoolean, dropDefer, dropBranch,
	}
}

// A generator makes the mutants of one function, constant or variable.
type generator struct {
	*source
	info  *types.Info
	scope string
	found []mutant
}

// generate returns every mutant of a package, in the order of its text.
func (p *pkg) generate() []mutant {
	var all []mutant
	for _, s := range p.sources {
		if ast.IsGenerated(s.file) {
			continue
		}
		for _, sc := range s.scopes() {
			g := &generator{source: s, info: p.info, scope: sc.name}
			if f, ok := sc.node.(*ast.FuncDecl); ok && f.Body != nil {
				g.mutateStart(f)
			}
			ast.Inspect(sc.node, g.visit)
			slices.SortStableFunc(g.found, func(a, b mutant) int { return a.start - b.start })
			all = append(all, g.found...)
		}
	}
	return all
}

func (g *generator) add(operator string, r span, with string) *mutant {
	g.found = append(g.found, newMutant(g.source, g.scope, operator, r, with))
	return &g.found[len(g.found)-1]
}

func (g *generator) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		g.mutateCondition(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			g.mutateCondition(n.Cond)
		}
	case *ast.BinaryExpr:
		g.mutateBinary(n)
	case *ast.BasicLit:
		g.mutateConstant(n)
	case *ast.Ident:
		g.mutateBoolean(n)
	case *ast.ReturnStmt:
		g.mutateReturn(n)
	case *ast.ArrayType:
		return n.Len == nil // a length is part of a type
	}
	list := statements(n)
	for i, st := range list {
		g.mutateStatement(st)
		if i > 0 {
			g.mutateOrder(list[i-1], st)
		}
	}
	return true
}

// mutateCondition negates a condition. Comparisons for equality and negations have operators or changes of their own.
func (g *generator) mutateCondition(cond ast.Expr) {
	text := g.textOf(spanOf(cond))
	switch c := cond.(type) {
	case *ast.UnaryExpr:
		if c.Op == token.NOT {
			g.add(negateCondition, spanOf(cond), g.textOf(spanOf(c.X)))
			return
		}
	case *ast.BinaryExpr:
		if c.Op == token.EQL || c.Op == token.NEQ {
			return
		}
	}
	g.add(negateCondition, spanOf(cond), "!("+text+")")
}

func (g *generator) mutateBinary(e *ast.BinaryExpr) {
	type change struct {
		operator string
		to       token.Token
	}
	changes := map[token.Token]change{
		token.LAND: {swapLogic, token.LOR}, token.LOR: {swapLogic, token.LAND},
		token.LSS: {moveBoundary, token.LEQ}, token.LEQ: {moveBoundary, token.LSS},
		token.GTR: {moveBoundary, token.GEQ}, token.GEQ: {moveBoundary, token.GTR},
		token.EQL: {flipEquality, token.NEQ}, token.NEQ: {flipEquality, token.EQL},
	}
	c, ok := changes[e.Op]
	if !ok {
		return
	}
	// Each side keeps its parentheses, as && binds tighter than ||, and the whole has some in what stands around it.
	x, y := g.textOf(spanOf(e.X)), g.textOf(spanOf(e.Y))
	if c.operator == swapLogic {
		x, y = "("+x+")", "("+y+")"
	}
	with := x + " " + c.to.String() + " " + y
	if c.operator == swapLogic {
		with = "(" + with + ")"
	}
	m := g.add(c.operator, spanOf(e), with)
	m.detail = e.Op.String() + " becomes " + c.to.String()
}

// mutateConstant replaces an integer by 0 and by the next one.
func (g *generator) mutateConstant(lit *ast.BasicLit) {
	if lit.Kind != token.INT {
		return
	}
	n, exact := constant.Int64Val(constant.MakeFromLiteral(lit.Value, token.INT, 0))
	if !exact {
		return
	}
	if n != 0 {
		g.add(changeConstant, spanOf(lit), "0")
	}
	g.add(changeConstant, spanOf(lit), strconv.FormatInt(n+1, 10))
}

func (g *generator) mutateBoolean(id *ast.Ident) {
	if c, ok := g.info.Uses[id].(*types.Const); !ok || c.Parent() != types.Universe {
		return
	}
	switch id.Name {
	case "true":
		g.add(flipBoolean, spanOf(id), "false")
	case "false":
		g.add(flipBoolean, spanOf(id), "true")
	}
}

func (g *generator) mutateStatement(st ast.Stmt) {
	switch st := st.(type) {
	case *ast.ExprStmt:
		if call, ok := st.X.(*ast.CallExpr); ok && !g.isLog(call) {
			g.add(deleteCall, spanOf(st), "")
		}
	case *ast.AssignStmt:
		if st.Tok != token.DEFINE && !g.isBlank(st) {
			g.add(deleteAssignment, spanOf(st), "")
		}
	case *ast.IncDecStmt:
		g.add(deleteAssignment, spanOf(st), "")
	case *ast.DeferStmt:
		g.add(dropDefer, spanOf(st), "")
	case *ast.BranchStmt:
		if st.Tok == token.CONTINUE || st.Tok == token.BREAK {
			g.add(dropBranch, spanOf(st), "")
		}
	}
}

// isLog reports whether a call writes a log: no test has to see that.
func (g *generator) isLog(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	f := g.info.Uses[sel.Sel]
	return f != nil && f.Pkg() != nil && slices.Contains([]string{"log", "log/slog", "k8s.io/klog/v2", "github.com/go-logr/logr"}, f.Pkg().Path())
}

func (g *generator) isBlank(st *ast.AssignStmt) bool {
	return !slices.ContainsFunc(st.Lhs, func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return !ok || id.Name != "_"
	})
}

// mutateReturn returns nil in place of an error.
func (g *generator) mutateReturn(st *ast.ReturnStmt) {
	if len(st.Results) == 0 {
		return
	}
	last := st.Results[len(st.Results)-1]
	if tv := g.info.Types[last]; tv.Type == nil || tv.IsNil() || !isError(tv.Type) {
		return
	}
	with := "nil"
	if _, ok := last.(*ast.CallExpr); ok && len(st.Results) == 1 {
		// The call is made all the same, as an error that is dropped is another mutant than a step that is left out.
		g.add(dropError, spanOf(st), "{ _ = "+g.textOf(spanOf(last))+"; return nil }").detail = "the error becomes nil"
		return
	}
	g.add(dropError, spanOf(last), with)
}

// isError reports whether values of a type are errors, also those of a type of their own.
func isError(t types.Type) bool {
	if tuple, ok := t.(*types.Tuple); ok {
		if tuple.Len() != 1 {
			return false
		}
		t = tuple.At(0).Type()
	}
	return types.Identical(t, types.Universe.Lookup("error").Type())
}

// mutateStart returns at the start of a function that returns an error, with zero values and without one.
func (g *generator) mutateStart(f *ast.FuncDecl) {
	if f.Type.Results == nil || len(f.Body.List) == 0 {
		return
	}
	results := f.Type.Results.List
	if !isError(g.info.Types[results[len(results)-1].Type].Type) {
		return
	}
	with, separator := "return ", ""
	for _, r := range results {
		for range max(1, len(r.Names)) {
			with += separator + "*new(" + g.textOf(spanOf(r.Type)) + ")"
			separator = ", "
		}
	}
	first := span{f.Body.Lbrace + 1, f.Body.Lbrace + 1}
	g.add(returnEarly, first, " "+with+";").detail = "return zero values and no error"
}

// mutateOrder swaps two statements where their order may matter.
func (g *generator) mutateOrder(a, b ast.Stmt) {
	if !isSimple(a) || !isSimple(b) || !g.conflict(a, b) {
		return
	}
	textA, textB := g.textOf(spanOf(a)), g.textOf(spanOf(b))
	between := g.text[g.offset(a.End()):g.offset(b.Pos())]
	m := g.add(swapStatements, span{a.Pos(), b.End()}, textB+between+textA)
	m.detail = "swap them"
}

func isSimple(st ast.Stmt) bool {
	switch st.(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt:
		return true
	}
	return false
}

// conflict reports whether both statements call, or one writes what the other names.
func (g *generator) conflict(a, b ast.Stmt) bool {
	if g.calls(a) && g.calls(b) {
		return true
	}
	return names(a, true).meets(names(b, false)) || names(b, true).meets(names(a, false))
}

// calls reports whether a statement calls a function that is neither a conversion nor a built-in one.
func (g *generator) calls(st ast.Stmt) (found bool) {
	ast.Inspect(st, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			tv := g.info.Types[call.Fun]
			found = found || !tv.IsType() && !tv.IsBuiltin()
		}
		return !found
	})
	return found
}

type nameSet map[string]bool

func (s nameSet) meets(o nameSet) bool {
	for n := range s {
		if o[n] {
			return true
		}
	}
	return false
}

// names returns the identifiers of a statement, or those that it writes to.
func names(st ast.Stmt, written bool) nameSet {
	set := nameSet{}
	collect := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Name != "_" {
				set[id.Name] = true
			}
			return true
		})
	}
	if !written {
		collect(st)
		return set
	}
	switch st := st.(type) {
	case *ast.AssignStmt:
		for _, e := range st.Lhs {
			collect(lastName(e))
		}
	case *ast.IncDecStmt:
		collect(lastName(st.X))
	}
	return set
}

// lastName returns the part of an assigned expression that is written to: the field of a selector.
func lastName(e ast.Expr) ast.Node {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.IndexExpr:
		return lastName(e.X)
	case *ast.StarExpr:
		return lastName(e.X)
	}
	return e
}
