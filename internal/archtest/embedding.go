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

const whyEmbedding = "code on a page that is not compiled and run rots: a page shows Examples, and declarations, as they stand in a file"

// embeddingDir holds a page for each package that users embed.
const embeddingDir = "docs/embedding"

// embedded are the packages that have a page.
var embedded = [...]string{"checkpoint", "configsync", "drain", "identity", "lkg", "machine", "rollout"}

// EmbeddingPages checks that each package that users embed has a page with code on it, and that each Go code block of these pages and of README.md is what the file has
// that the line before it links to: the body of an Example with an Output comment, or declarations in a row, or all of the file but its licence.
func EmbeddingPages(t *Tree) []Violation {
	var vs []Violation
	files := map[string]*File{}
	for _, f := range t.Files {
		files[f.Path] = f
	}
	for _, name := range embedded {
		page := files[embeddingDir+"/"+name+".md"]
		if page == nil || len(goBlocks(page.Text)) == 0 {
			vs = append(vs, Violation{embeddingDir + "/" + name + ".md", "is missing, or has no Go code", whyEmbedding})
		}
	}
	for _, f := range t.Files {
		if f.Path != "README.md" && (f.Dir() != embeddingDir || path.Ext(f.Path) != ".md") {
			continue
		}
		for _, b := range goBlocks(f.Text) {
			if what := b.wrong(f.Dir(), files); what != "" {
				vs = append(vs, Violation{fmt.Sprintf("%s:%d", f.Path, b.line), what, whyEmbedding})
			}
		}
	}
	return vs
}

// A goBlock is the code between ```go and ```.
type goBlock struct {
	line   int    // of the fence
	before string // the last line before it that is not blank
	code   string
}

func goBlocks(text []byte) []goBlock {
	var blocks []goBlock
	var before string
	var open *goBlock
	for i, line := range strings.SplitAfter(string(text), "\n") {
		fence := strings.TrimRight(line, " \n")
		switch {
		case open != nil && fence == "```":
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.code += line
		case strings.HasPrefix(strings.ToLower(fence), "```go"):
			open = &goBlock{line: i + 1, before: before}
		case fence != "":
			before = fence
		}
	}
	if open != nil {
		blocks = append(blocks, *open)
	}
	return blocks
}

var goLink = regexp.MustCompile(`\]\(([^)#]+\.go)\)`)

// wrong says why the block is not what a file has, or nothing.
func (b goBlock) wrong(dir string, files map[string]*File) string {
	links := goLink.FindAllStringSubmatch(b.before, -1)
	if len(links) == 0 {
		return "Go code without a link to its file in the line before it"
	}
	from := path.Join(dir, links[len(links)-1][1])
	switch f := files[from]; {
	case f == nil || !f.isGo():
		return fmt.Sprintf("Go code of %s, which is not there", from)
	case !slices.Contains(f.shown(), b.code) && !f.declares(b.code):
		return fmt.Sprintf("Go code that is not in %s: no body of a runnable Example, no declarations in a row, not the file", from)
	}
	return ""
}

// shown are the texts of a file that a page may show in whole: the file without its licence and build constraint, and the bodies of its runnable Examples.
func (f *File) shown() []string {
	whole := f.Text[f.offset(f.AST.Package):]
	texts := []string{string(whole)}
	if !f.isTest() {
		return texts
	}
	runs := map[string]bool{}
	for _, e := range doc.Examples(f.AST) {
		runs["Example"+e.Name] = e.Output != "" || e.EmptyOutput
	}
	for _, d := range f.AST.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && runs[fn.Name.Name] {
			body := f.Text[f.offset(fn.Body.Lbrace)+1 : f.offset(fn.Body.Rbrace)]
			texts = append(texts, unindented(body))
		}
	}
	return texts
}

// unindented is the body of a function as a page shows it: one tab less. Raw strings of several lines that have no tab at the start of each stay as they are.
func unindented(body []byte) string {
	lines := bytes.SplitAfter(bytes.TrimPrefix(body, []byte("\n")), []byte("\n"))
	for i, l := range lines {
		lines[i] = bytes.TrimPrefix(l, []byte("\t"))
	}
	return string(bytes.Join(lines, nil))
}

// declares says whether the text is one or more declarations of the file in a row, each with its comment, or from the end of its comment on.
func (f *File) declares(text string) bool {
	begins, ends := map[int]bool{}, map[int]bool{}
	for _, d := range f.AST.Decls {
		begins[f.offset(d.Pos())], ends[f.offset(d.End())] = true, true
		if c := comment(d); c != nil {
			begins[f.offset(c.Pos())] = true
		}
	}
	for at := range begins {
		if end := at + len(strings.TrimRight(text, "\n")); ends[end] && string(f.Text[at:end])+"\n" == text {
			return true
		}
	}
	return false
}

func comment(d ast.Decl) *ast.CommentGroup {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Doc
	case *ast.GenDecl:
		return d.Doc
	}
	return nil
}
