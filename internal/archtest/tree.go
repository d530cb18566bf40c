// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A Tree is the text of the module: every text file, and the parsed form of the Go files, nested modules included. Data holds
// what lies in testdata directories, where Go files may be bad on purpose and are not parsed.
type Tree struct {
	Files []*File
	Data  []*File
}

// A File is one text file. AST is set for Go files.
type File struct {
	Path  string // inside the module, with slashes
	Text  []byte
	Fset  *token.FileSet
	AST   *ast.File
	lines int
}

// skippedDirs hold what is not the project's own text.
var skippedDirs = []string{".git", ".cache", "bin", "vendor"}

// ReadTree reads the module in fsys. Files that hold a NUL byte are taken as binary and left out, as are build output and
// git's own files.
func ReadTree(fsys fs.FS) (*Tree, error) {
	t := &Tree{}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("walking the tree: %w", err)
		case d.IsDir() && slices.Contains(skippedDirs, d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular(), d.Name() == ".git":
			return nil
		}
		return t.add(fsys, p)
	})
	return t, err
}

func (t *Tree) add(fsys fs.FS, p string) error {
	text, err := fs.ReadFile(fsys, p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a tool's temporary file, gone since the directory was listed
	}
	if err != nil {
		return fmt.Errorf("reading the tree: %w", err)
	}
	if bytes.IndexByte(text, 0) >= 0 || isBuilt(p) {
		return nil
	}
	f := &File{Path: p, Text: text, lines: bytes.Count(text, []byte("\n"))}
	if slices.Contains(strings.Split(p, "/"), "testdata") {
		t.Data = append(t.Data, f)
		return nil
	}
	if path.Ext(p) == ".go" {
		f.Fset = token.NewFileSet()
		f.AST, err = parser.ParseFile(f.Fset, p, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parsing the tree: %w", err)
		}
	}
	t.Files = append(t.Files, f)
	return nil
}

func isBuilt(p string) bool { return slices.Contains([]string{".test", ".out", ".prof"}, path.Ext(p)) }

// Dir is the directory of the file inside the module, "." for the root.
func (f *File) Dir() string { return path.Dir(f.Path) }

func (f *File) isGo() bool        { return f.AST != nil }
func (f *File) isTest() bool      { return strings.HasSuffix(f.Path, "_test.go") }
func (f *File) isMain() bool      { return f.AST.Name.Name == "main" }
func (f *File) isGenerated() bool { return f.isGo() && ast.IsGenerated(f.AST) }

// pkg is the name of the package that the file belongs to or, for an external test, tests.
func (f *File) pkg() string { return strings.TrimSuffix(f.AST.Name.Name, "_test") }

func (f *File) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.Path, f.Fset.Position(n.Pos()).Line)
}

// offset is where in the text a place of the syntax is.
func (f *File) offset(at token.Pos) int { return f.Fset.Position(at).Offset }

// imported gives the name by which the file calls an imported package, or "" if it does not import it.
func (f *File) imported(importPath string) string {
	for _, imp := range f.AST.Imports {
		switch {
		case imp.Path.Value != `"`+importPath+`"`:
		case imp.Name != nil:
			return imp.Name.Name
		default:
			return packageName(importPath)
		}
	}
	return ""
}

// packageName guesses a package's name from its import path: the last element that is not a major version.
func packageName(importPath string) string {
	dir, last := path.Split(importPath)
	if strings.HasPrefix(last, "v") && strings.Trim(last[1:], "0123456789") == "" {
		return path.Base(dir)
	}
	return last
}

// goFiles gives the Go files that want accepts, in path order.
func (t *Tree) goFiles(want func(*File) bool) []*File {
	var files []*File
	for _, f := range t.Files {
		if f.isGo() && want(f) {
			files = append(files, f)
		}
	}
	return files
}

// byDir groups the Go files by directory.
func (t *Tree) byDir() map[string][]*File {
	dirs := map[string][]*File{}
	for _, f := range t.goFiles(func(*File) bool { return true }) {
		dirs[f.Dir()] = append(dirs[f.Dir()], f)
	}
	return dirs
}

// eachDir calls visit for every directory with Go files, in path order.
func (t *Tree) eachDir(visit func(dir string, files []*File)) {
	dirs := t.byDir()
	names := make([]string, 0, len(dirs))
	for d := range dirs {
		names = append(names, d)
	}
	slices.Sort(names)
	for _, d := range names {
		visit(d, dirs[d])
	}
}
