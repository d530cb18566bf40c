// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os"
	"testing"
)

// TestImports runs the import rules on the module itself.
func TestImports(t *testing.T) {
	g, err := ListGraph(t.Context(), moduleRoot(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := g.Packages[Module]; !ok {
		t.Fatalf("the graph of %d packages lacks the root package", len(g.Packages))
	}
	for name, rule := range importRules {
		t.Run(name, func(t *testing.T) { report(t, rule(g)) })
	}
}

// TestRequiredModules checks go.mod against the allow list.
func TestRequiredModules(t *testing.T) {
	direct, err := DirectModules(t.Context(), moduleRoot(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(direct) == 0 {
		t.Fatal("go.mod requires nothing directly: it was not read")
	}
	report(t, RequirementsPlanned(direct))
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
