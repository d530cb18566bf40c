// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

const whyCorpus = "what the fuzzer should begin with, and what it once found, is committed beside its target, so that each run of the tests plays it again"

// FuzzTargets gives the fuzz targets of what reads a node's config and its records, as directory and name.
func FuzzTargets(t *Tree) (targets []string) {
	for _, f := range t.goFiles((*File).isTest) {
		if !slices.Contains([]string{"checkpoint", "lkg", "configsync"}, rootOf(f.Dir())) {
			continue
		}
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Fuzz") {
				targets = append(targets, path.Join(f.Dir(), fn.Name.Name))
			}
		}
	}
	slices.Sort(targets)
	return targets
}

// FuzzCorpora checks that each of them has a corpus.
func FuzzCorpora(t *Tree) []Violation {
	var vs []Violation
	for _, target := range FuzzTargets(t) {
		corpus := path.Join(path.Dir(target), "testdata/fuzz", path.Base(target)) + "/"
		if !slices.ContainsFunc(t.Data, func(f *File) bool { return strings.HasPrefix(f.Path, corpus) }) {
			vs = append(vs, Violation{target, fmt.Sprintf("has no corpus in %s", corpus), whyCorpus})
		}
	}
	return vs
}
