// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// A source is a parsed file.
type source struct {
	path string
	text string
	fset *token.FileSet
	file *ast.File
}

// parseSource parses a file. An empty text stands for the content of the file at path.
func parseSource(fset *token.FileSet, path, text string) (*source, error) {
	if text == "" {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		text = string(b)
	}
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{path: path, text: text, fset: fset, file: file}, nil
}

// parseDir parses the files of a package that are no tests, whatever platform they are for.
func parseDir(dir string) ([]*source, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var sources []*source
	fset := token.NewFileSet()
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		s, err := parseSource(fset, path, "")
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%s: no Go files", dir)
	}
	return sources, nil
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

// textOf returns the text of a range of the file.
func (s *source) textOf(r span) string { return s.text[s.offset(r.pos):s.offset(r.end)] }

// A span is a node, or statements that follow each other.
type span struct{ pos, end token.Pos }

func spanOf(n ast.Node) span { return span{n.Pos(), n.End()} }

// A scope is a named part of a file: a function, or a declared constant or variable.
type scope struct {
	name string
	node ast.Node
}

// scopes returns the functions, constants and variables that the file declares.
func (s *source) scopes() []scope {
	var all []scope
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			all = append(all, scope{funcName(d), d})
		case *ast.GenDecl:
			for _, sp := range d.Specs {
				if v, ok := sp.(*ast.ValueSpec); ok {
					all = append(all, scope{v.Names[0].Name, v})
				}
			}
		}
	}
	return all
}

// funcName names a function as a stack trace does, without type parameters: Plan, (*pass).enter, Ref.String.
func funcName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	switch t := f.Recv.List[0].Type.(type) {
	case *ast.StarExpr:
		return "(*" + typeName(t.X) + ")." + f.Name.Name
	default:
		return typeName(t) + "." + f.Name.Name
	}
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.ParenExpr:
		return typeName(e.X)
	}
	return "?"
}

// canonical returns the tokens of Go text, separated by spaces: comments, line breaks and trailing commas do not count.
func canonical(text string) string {
	var sc scanner.Scanner
	fset := token.NewFileSet()
	sc.Init(fset.AddFile("", fset.Base(), len(text)), []byte(text), nil, 0)
	var tokens []string
	for {
		_, tok, lit := sc.Scan()
		word := tok.String()
		switch {
		case tok == token.EOF:
			return strings.TrimSuffix(strings.Join(tokens, " "), " ;")
		case tok == token.SEMICOLON:
			word = ";"
		case lit != "":
			word = lit
		}
		closes := tok == token.RPAREN || tok == token.RBRACE || tok == token.RBRACK
		if n := len(tokens); n > 0 && closes && (tokens[n-1] == "," || tokens[n-1] == ";") {
			tokens = tokens[:n-1]
		}
		tokens = append(tokens, word)
	}
}

// find returns every expression, statement or series of statements in a node whose canonical form is want. count is the number
// of statements that want has, or 0 for an expression.
func (s *source) find(in ast.Node, want string, count int) []span {
	var found []span
	try := func(r span) {
		if canonical(s.textOf(r)) == want {
			found = append(found, r)
		}
	}
	ast.Inspect(in, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && count == 0 {
			try(spanOf(e))
		}
		list := statements(n)
		for i := 0; count > 0 && i+count <= len(list); i++ {
			try(span{list[i].Pos(), list[i+count-1].End()})
		}
		return true
	})
	return found
}

// statements returns the statements that a node lists.
func statements(n ast.Node) []ast.Stmt {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return n.List
	case *ast.CaseClause:
		return n.Body
	case *ast.CommClause:
		return n.Body
	}
	return nil
}

// countStatements returns how many statements a text has, or 0 for an expression.
func countStatements(text string) (int, error) {
	if _, err := parser.ParseExpr(text); err == nil {
		return 0, nil
	}
	f, err := parser.ParseFile(token.NewFileSet(), "", "package p; func _() {"+text+"\n}", parser.SkipObjectResolution)
	if err != nil {
		return 0, fmt.Errorf("neither an expression nor statements: %w", err)
	}
	return len(f.Decls[0].(*ast.FuncDecl).Body.List), nil
}
