// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Module is the path of the module that the rules are about.
const Module = "github.com/belayproject/belay"

// A Violation is one broken rule: where, what was found there, and why the rule exists.
type Violation struct{ Where, What, Why string }

// String gives the violation as one failure text.
func (v Violation) String() string { return fmt.Sprintf("%s: %s\n\twhy: %s", v.Where, v.What, v.Why) }

// A Graph is the packages of the project's modules and everything they import, without tests.
type Graph struct {
	Module   string
	Packages map[string]Package // by import path
}

// A Package is one node of a [Graph].
type Package struct {
	ImportPath string
	Name       string
	Standard   bool
	Imports    []string
}

// ListGraph asks the go command for the graph of the modules in dirs, for this platform and without build tags. Each module is
// listed by itself, as its users build it. A package that several modules import is as the first of them sees it.
func ListGraph(ctx context.Context, dirs ...string) (Graph, error) {
	g := Graph{Module: Module, Packages: map[string]Package{}}
	for _, dir := range dirs {
		out, err := goCommand(ctx, dir, "list", "-deps", "-json=ImportPath,Name,Standard,Imports", "./...")
		if err != nil {
			return Graph{}, err
		}
		if err := g.add(out); err != nil {
			return Graph{}, fmt.Errorf("decoding the package list of %q: %w", dir, err)
		}
	}
	return g, nil
}

func (g Graph) add(list []byte) error {
	dec := json.NewDecoder(bytes.NewReader(list))
	for {
		var p Package
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if _, listed := g.Packages[p.ImportPath]; !listed {
			g.Packages[p.ImportPath] = p
		}
	}
}

// ModuleRoot gives the directory of the go.mod of [Module] at or above dir. Nested modules on the way are passed by.
func ModuleRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the module root: %w", err)
	}
	for d := dir; ; d = filepath.Dir(d) {
		mod, err := os.ReadFile(filepath.Join(d, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module "+Module+"\n")) {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("finding the module root: no go.mod of %q at or above %q", Module, dir)
		}
	}
}

func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off") // go.work is for editors: it would join the requirements of all modules
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running go %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// own gives the path of a package inside the module: "" for the root package. ok is false for any other module's package.
func (g Graph) own(importPath string) (rel string, ok bool) {
	if importPath == g.Module {
		return "", true
	}
	return strings.CutPrefix(importPath, g.Module+"/")
}

// ownPaths gives the module's packages, sorted, by their path inside the module.
func (g Graph) ownPaths() []string {
	var paths []string
	for p := range g.Packages {
		if rel, ok := g.own(p); ok {
			paths = append(paths, rel)
		}
	}
	slices.Sort(paths)
	return paths
}

// at gives the package at a path inside the module.
func (g Graph) at(rel string) Package {
	return g.Packages[strings.TrimSuffix(g.Module+"/"+rel, "/")]
}

// chain gives the shortest import chain from a package to one that bad accepts, both ends included, or nil. It goes on only
// through packages that through accepts.
func (g Graph) chain(from string, bad, through func(importPath string) bool) []string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, imp := range g.Packages[queue[0]].Imports {
			if _, seen := before[imp]; seen {
				continue
			}
			before[imp] = queue[0]
			if bad(imp) {
				return unwind(before, imp)
			}
			if through(imp) {
				queue = append(queue, imp)
			}
		}
	}
	return nil
}

func unwind(before map[string]string, last string) []string {
	var chain []string
	for p := last; p != ""; p = before[p] {
		chain = append(chain, p)
	}
	slices.Reverse(chain)
	return chain
}
