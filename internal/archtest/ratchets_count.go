// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxMethods = 25
	maxFields  = 12
	maxFiles   = 20
	maxColumns = 120
)

// isSource reports whether a file is Go code that is no test.
func isSource(f *File) bool { return f.isGo() && !f.isTest() }

// eachDecl calls visit for the declarations of the files that are no tests.
func eachDecl(files []*File, visit func(ast.Decl)) {
	for _, f := range files {
		if isSource(f) {
			for _, d := range f.AST.Decls {
				visit(d)
			}
		}
	}
}

func methodsOver(files []*File) (over int) {
	methods := map[string]int{}
	eachDecl(files, func(d ast.Decl) {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
			methods[receiver(fn)]++
		}
	})
	for _, n := range methods {
		over += max(0, n-maxMethods)
	}
	return over
}

// receiver gives the name of a method's type, without its parameters.
func receiver(fn *ast.FuncDecl) string {
	e := fn.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func fieldsOver(files []*File) (over int) {
	eachDecl(files, func(d ast.Decl) {
		ast.Inspect(d, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if ok {
				fields := 0
				for _, f := range s.Fields.List {
					fields += max(1, len(f.Names)) // an embedded field has no name
				}
				over += max(0, fields-maxFields)
			}
			return true
		})
	})
	return over
}

func filesOver(files []*File) int {
	n := 0
	for _, f := range files {
		if isSource(f) {
			n++
		}
	}
	return max(0, n-maxFiles)
}

// usual are the names of one word, in lower case, that the standard library, client-go or an interface of this
// project's design has.
const usual = ` 
	main string error unwrap is as close read write get put list delete create update patch apply watch run start stop wait reconcile plan new
	open len less swap add remove done lock unlock next reset set has equal compare name key keys values now after until since sleep validate
	decode encode marshal unmarshal helper fatal err fetch observe prepare verify revert commit handle serve flush sync load store copy clone
	sort format parse print printf render build exec dial listen accept send receive push pop peek seek stat lstat chmod chown mkdir rename truncate link size
	mode type kind version subscribe publish register collect describe evict drain cordon uncordon promote rollback decide report restart
	record event eventf errorf fatalf log logf skip cleanup context background must join split filter map contains index insert append first
	last min max sum count abs release acquire renew resume pause abort retry freeze`

// isUsual reports whether a name of one word is one of usual.
func isUsual(name string) bool { return slices.Contains(strings.Fields(usual), strings.ToLower(name)) }

func oneWordNames(files []*File) (n int) {
	eachDecl(files, func(d ast.Decl) {
		if fn, ok := d.(*ast.FuncDecl); ok && isOneWord(fn.Name.Name) && !isUsual(fn.Name.Name) {
			n++
		}
	})
	return n
}

// isOneWord reports whether no word begins within a name: heed, Heed and HTTP are one word, applyRequest and HTTPClient
// are two.
func isOneWord(name string) bool {
	lower := false
	for _, r := range strings.TrimSuffix(name, "s") {
		if unicode.IsUpper(r) && lower || r == '_' {
			return false
		}
		lower = unicode.IsLower(r)
	}
	return !hasInitialism.MatchString(name)
}

// hasInitialism finds a word after an initialism: HTTPClient.
var hasInitialism = regexp.MustCompile(`\p{Lu}{2,}\p{Ll}`)

// oddWord are words that hide who acts, and phrases that a reader does not look for.
var oddWord = regexp.MustCompile(`(?i)\b(?:nobody|somebody|whoever|` + `what is told|at rest)\b`)

func oddWords(files []*File) (n int) {
	for _, f := range files {
		if within(f.Dir(), "internal/archtest") {
			continue // it has the list
		}
		n += len(oddWord.FindAll(f.Text, -1))
	}
	return n
}

// longLines counts the lines over the limit. A tab is one column. The rows of a Markdown table cannot be broken.
func longLines(files []*File) (n int) {
	for _, f := range files {
		for line := range bytes.Lines(f.Text) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			row := !f.isGo() && bytes.HasPrefix(line, []byte("|"))
			if utf8.RuneCount(line) > maxColumns && !row {
				n++
			}
		}
	}
	return n
}
