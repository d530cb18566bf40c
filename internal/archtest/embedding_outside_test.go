// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// elsewhere is the page whose code is files of a module of its own, examples/manager, which compiles them: it needs
// controller-runtime, which the library's module has not. EmbeddingPages compares the texts.
const elsewhere = "docs/embedding/controller-runtime.md"

// Every Go block of every page is a whole file, which compiles as it stands in a module outside of the repository.
func TestPagesCompileOutside(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := listPages(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	n := 0
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range goBlocks(text) {
			if !strings.HasPrefix(b.code, "package ") {
				t.Errorf("%s:%d: Go code that is not a whole program: show the whole file", page, b.line)
				continue
			}
			if page == elsewhere {
				continue
			}
			n++
			writeAll(t, filepath.Join(dir, fmt.Sprintf("block%d", n), nameProgram(b.code)), []byte(b.code))
		}
	}
	if n < 20 {
		t.Errorf("the pages have %d programs outside of %s", n, elsewhere)
	}
	writeOutsideModule(t, root, dir)
	if out, err := vetOutside(dir); err != nil {
		t.Errorf("%d programs of the pages, outside of the repository: %v\n%s", n, err, out)
	}
}

// vetOutside vets a module outside of the repository. It may download what the requirements of the library require; a
// program that needs more fails.
func vetOutside(dir string) (out []byte, err error) {
	before, err := listDirect(dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "vet", "./...")
	cmd.Dir = dir
	cmd.Env = append(slices.Clone(os.Environ()), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath")
	if out, err = cmd.CombinedOutput(); err != nil {
		return out, err
	}
	after, err := listDirect(dir)
	if err == nil && !slices.Equal(before, after) {
		err = fmt.Errorf("a program needs a module that the library does not itself: want %q, got %q", before, after)
	}
	return out, err
}

// listDirect returns the modules that a go.mod requires, but for the indirect ones.
func listDirect(dir string) (modules []string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	for _, found := range directRequirement.FindAllStringSubmatch(string(text), -1) {
		modules = append(modules, found[1])
	}
	slices.Sort(modules)
	return slices.Compact(modules), err
}

// directRequirement finds a line of a go.mod that ends with a version: an indirect one ends with a comment.
var directRequirement = regexp.MustCompile(`(?m)^\s*(?:require )?(\S+) v\S+$`)

// listPages returns the Markdown files of the repository, by their path inside it.
func listPages(root string) (pages []string, err error) {
	return pages, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin"):
			return filepath.SkipDir
		case filepath.Ext(name) == ".md":
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			pages = append(pages, filepath.ToSlash(rel))
		}
		return nil
	})
}

// nameProgram returns the file name of a program: that of a test where its package is one.
func nameProgram(code string) string {
	if name, _, _ := strings.Cut(code, "\n"); strings.HasSuffix(name, "_test") {
		return "program_test.go"
	}
	return "program.go"
}

// firstScreen is how many lines of "go doc" a reader sees first.
const firstScreen = 24

// The Go code of a package comment is a whole file, which compiles as it stands in a module outside of the repository.
// A root package begins with such a file, on the first screen of its documentation.
func TestPackageCommentsCompileOutside(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	n := 0
	for _, pkg := range libraryPackages(t, root) {
		cmd := exec.Command("go", "doc", "./"+pkg)
		cmd.Dir = root
		cmd.Env = append(slices.Clone(os.Environ()), "GOWORK=off")
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("go doc %s: %v", pkg, err)
		}
		called := false
		for _, b := range indentedBlocks(listing.Split(string(text), 2)[0]) {
			if !strings.HasPrefix(b.code, "package ") {
				if goStatement.MatchString(b.code) {
					t.Errorf("%s: Go code in the package comment that is not a whole file: show the whole file\n%s", pkg, b.code)
				}
				continue
			}
			n++
			called = called || b.line+strings.Count(b.code, "\n") <= firstScreen
			writeAll(t, filepath.Join(dir, fmt.Sprintf("comment%d", n), "program.go"), []byte(b.code))
		}
		if slices.Contains(publicRoots, pkg) && !called {
			t.Errorf("%s: the first %d lines of go doc have no program: begin the package comment with one", pkg, firstScreen)
		}
	}
	writeOutsideModule(t, root, dir)
	if out, err := vetOutside(dir); err != nil {
		t.Errorf("%d files of package comments, outside of the repository: %v\n%s", n, err, out)
	}
}

// listing is where go doc ends the package comment and begins the list of names.
var listing = regexp.MustCompile(`(?m)^(const|var|func|type) `)

// goStatement finds what only Go code has.
var goStatement = regexp.MustCompile(`(?m):= |^func |, err = |\berr != nil`)

// libraryPackages returns the public packages of the root module, by their path inside it.
func libraryPackages(t *testing.T, root string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "./...")
	cmd.Dir = root
	cmd.Env = append(slices.Clone(os.Environ()), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	for path := range strings.FieldsSeq(string(out)) {
		if rel := strings.TrimPrefix(path, Module+"/"); rel != path && IsPublic(rel) {
			packages = append(packages, rel)
		}
	}
	return packages
}

// indentedBlocks returns the code of a package comment as go doc shows it, with the number of lines before each.
func indentedBlocks(text string) []goBlock {
	var blocks []goBlock
	var open *goBlock
	for i, line := range strings.SplitAfter(text, "\n") {
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case indented && open != nil:
			open.code += code
		case indented:
			open = &goBlock{line: i, code: code}
		case open != nil && strings.TrimSpace(line) == "":
			open.code += line // a blank line is inside of the block where an indented line follows
		case open != nil:
			blocks, open = append(blocks, *open), nil
		}
	}
	if open != nil {
		blocks = append(blocks, *open)
	}
	for i := range blocks {
		blocks[i].code = strings.TrimRight(blocks[i].code, "\n") + "\n"
	}
	return blocks
}

// writeOutsideModule makes the module of an embedder: it has the versions of the library's own requirements.
func writeOutsideModule(t *testing.T, root, dir string) {
	t.Helper()
	own, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, requirements, ok := bytes.Cut(own, []byte("\n"))
	if !ok {
		t.Fatal("go.mod has one line")
	}
	module := "module example.com/embedder\n" + string(requirements) +
		"\nrequire github.com/belayproject/belay v0.0.0\n\nreplace github.com/belayproject/belay => " + root + "\n"
	writeAll(t, filepath.Join(dir, "go.mod"), []byte(module))
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	writeAll(t, filepath.Join(dir, "go.sum"), sums)
}

func writeAll(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
