// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os"
	"path/filepath"
	"testing"
)

// TestImports runs the import rules on the modules that users take.
func TestImports(t *testing.T) {
	var dirs []string
	for _, dir := range moduleTree(t).userModules() {
		dirs = append(dirs, filepath.Join(moduleRoot(t), dir))
	}
	g, err := ListGraph(t.Context(), dirs...)
	if err != nil {
		t.Fatal(err)
	}
	for _, rel := range []string{"", "drain", "configsync/restart/systemd", "examples/agent"} {
		if _, ok := g.Packages[g.at(rel).ImportPath]; !ok {
			t.Fatalf("the graph of %d packages lacks %q", len(g.Packages), display(rel))
		}
	}
	for name, rule := range importRules {
		t.Run(name, func(t *testing.T) { report(t, rule(g)) })
	}
}

// TestRequiredModules checks the go.mod of each module that users take against the allow list.
func TestRequiredModules(t *testing.T) {
	tree := moduleTree(t)
	for _, dir := range tree.userModules() {
		required, err := Requirements(t.Context(), filepath.Join(moduleRoot(t), dir))
		if err != nil {
			t.Fatal(err)
		}
		if len(required) == 0 {
			t.Errorf("%s/go.mod requires nothing: it was not read", dir)
		}
		report(t, RequirementsPlanned(tree.Modules(), dir, required))
	}
}

// TestHygiene runs the rules about sources on the module itself, nested modules included.
func TestHygiene(t *testing.T) {
	tree := moduleTree(t)
	for name, rule := range treeRules {
		t.Run(name, func(t *testing.T) { report(t, rule(tree)) })
	}
}

var importRules = map[string]func(Graph) []Violation{
	"roots alone":     RootsAlone,
	"allow list":      ImportsAllowed,
	"nothing heavy":   NothingHeavy,
	"kits apart":      KitsApart,
	"examples public": ExamplesPublic,
}

var treeRules = map[string]func(*Tree) []Violation{
	"package comments":  PackageComments,
	"licence headers":   LicenceHeaders,
	"runnable examples": RunnableExamples,
	"fuzz corpora":      FuzzCorpora,
	"sizes":             Sizes,
	"top level":         TopLevel,
	"example mains":     ExampleMains,
	"calls":             Calls,
	"package variables": PackageVars,
	"words":             Words,
	"status tables":     StatusTrue,
	"embedding pages":   EmbeddingPages,
	"links":             LinksLead,
	"test tiers":        TierMarks,
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func moduleTree(t *testing.T) *Tree {
	t.Helper()
	tree, err := ReadTree(os.DirFS(moduleRoot(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Files) == 0 {
		t.Fatal("the tree is empty")
	}
	return tree
}

func report(t *testing.T, vs []Violation) {
	t.Helper()
	for _, v := range vs {
		t.Error(v)
	}
}
