// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"strings"
	"testing"
)

// graph makes a module out of lines "package: import import"; imports of the module's own packages begin with a slash.
func graph(lines ...string) Graph {
	g := Graph{Module: Module, Packages: map[string]Package{}}
	full := func(p string) string {
		if own, ok := strings.CutPrefix(p, "/"); ok {
			return strings.TrimSuffix(Module+"/"+own, "/")
		}
		return p
	}
	for _, line := range lines {
		name, imports, _ := strings.Cut(line, ":")
		p := Package{ImportPath: full(name), Name: name[strings.LastIndex(name, "/")+1:]}
		for _, imp := range strings.Fields(imports) {
			imp = full(imp)
			p.Imports = append(p.Imports, imp)
			if _, listed := g.Packages[imp]; !listed {
				g.Packages[imp] = Package{ImportPath: imp, Standard: !strings.Contains(imp, ".")}
			}
		}
		g.Packages[p.ImportPath] = p
	}
	return g
}

// TestImportRulesCatch shows each import rule a module that breaks it, and one close to it that does not.
func TestImportRulesCatch(t *testing.T) {
	for _, c := range []struct {
		name, rule string
		graph      Graph
		want       string // a part of the only violation, "" for none
	}{
		{"direct", "roots alone", graph("/drain: /lkg", "/lkg:"), "drain -> lkg"},
		{"by way of internal", "roots alone", graph("/drain: /internal/x", "/internal/x: /lkg", "/lkg:"), "drain -> internal/x -> lkg"},
		{"by way of types", "roots alone", graph("/rollout: /drain/v1alpha1", "/drain/v1alpha1: /drain", "/drain:"), "drain/v1alpha1 -> drain"},
		{"kit of another root", "roots alone", graph("/lkg/lkgtest: /checkpoint", "/checkpoint:"), "lkg/lkgtest -> checkpoint"},
		{"part of the exception", "roots alone", graph("/configsync: /lkg/lkgtest", "/lkg/lkgtest:"), "lkg/lkgtest"},
		{"the exception", "roots alone", graph("/configsync/kube: /configsync", "/configsync: /lkg", "/lkg:"), ""},
		{"the exception backwards", "roots alone", graph("/lkg: /configsync", "/configsync:"), "lkg -> configsync"},
		{"types cross", "roots alone", graph("/rollout/v1alpha1: /configsync/v1alpha1", "/configsync/v1alpha1:"), ""},
		{"examples wire", "roots alone", graph("/examples/agent: /lkg /drain", "/lkg:", "/drain:"), ""},

		{"leaf, other module", "allow list", graph("/lkg: k8s.io/api/core/v1"), `imports "k8s.io/api/core/v1"`},
		{"leaf, internal", "allow list", graph("/checkpoint: /internal/x", "/internal/x: os golang.org/x/sys/unix /internal/y", "/internal/y: io"), ""},
		{"leaf, heavy internal", "allow list", graph("/checkpoint: /internal/x", "/internal/x: k8s.io/klog/v2"), "internal/x -> k8s.io/klog/v2"},
		{"leaf, heavy far", "allow list", graph("/lkg: /internal/x", "/internal/x: /internal/y", "/internal/y: k8s.io/api/core/v1"),
			"internal/x -> internal/y -> k8s.io/api/core/v1"},
		{"leaf, root by internal", "allow list", graph("/lkg: /internal/x", "/internal/x: /drain", "/drain:"), "internal/x -> drain"},
		{"leaf kit", "allow list", graph("/checkpoint/checkpointtest: k8s.io/klog/v2"), `imports "k8s.io/klog/v2"`},
		{"leaf, allowed", "allow list", graph("/checkpoint: os golang.org/x/sys/unix"), ""},
		{"parser in the core", "allow list", graph("/configsync: sigs.k8s.io/yaml"), ""},
		{"parser in another leaf", "allow list", graph("/lkg: sigs.k8s.io/yaml"), `imports "sigs.k8s.io/yaml"`},
		{"core, client", "allow list", graph("/configsync: k8s.io/client-go/rest"), `imports "k8s.io/client-go/rest"`},
		{"ring", "allow list", graph("/configsync/kube: k8s.io/client-go/rest"), ""},
		{"like a prefix", "allow list", graph("/drain: k8s.io/api-machinations"), `imports "k8s.io/api-machinations"`},
		{"ring, for mains", "allow list", graph("/drain: github.com/spf13/cobra"), `imports "github.com/spf13/cobra"`},
		{"main", "allow list", graph("/examples/agent: github.com/spf13/cobra"), ""},
		{"nobody's package", "allow list", graph("/surprise:"), "no line in the allow list"},
		{"root package", "allow list", graph("/: golang.org/x/sys/unix"), `imports "golang.org/x/sys/unix"`},

		{"heavy, direct", "nothing heavy", graph("/drain: k8s.io/kubectl/pkg/drain"), "drain -> k8s.io/kubectl/pkg/drain"},
		{"heavy, far", "nothing heavy", graph("/drain: a.b/c", "a.b/c: github.com/prometheus/common/x"), "a.b/c -> github.com/prometheus"},
		{"heavy in a main", "nothing heavy", graph("/examples/agent: k8s.io/component-base/logs"), ""},

		{"testing in a library", "kits apart", graph("/lkg: testing"), `imports "testing"`},
		{"test server in a library", "kits apart", graph("/lkg: net/http/httptest"), `imports "net/http/httptest"`},
		{"kit in a library", "kits apart", graph("/lkg: /lkg/lkgtest", "/lkg/lkgtest: testing"), `imports "` + Module + `/lkg/lkgtest"`},
		{"environment in a main", "kits apart", graph("/examples/demo: /internal/testenv", "/internal/testenv: testing"), "internal/testenv"},
		{"environment, far", "kits apart", graph("/drain: /internal/x", "/internal/x: /internal/y", "/internal/y: testing"), "internal/x"},
		{"testing in a kit", "kits apart", graph("/lkg/lkgtest: testing", "/internal/testenv: testing", "/internal/x: /internal/testenv"), ""},

		{"internal in an example", "examples public", graph("/examples/demo: /internal/x", "/internal/x:"), `internal package "internal/x"`},
		{"its own internal in an example", "examples public", graph("/examples/agent: /examples/agent/internal/x", "/examples/agent/internal/x:"), ""},
		{"internal in what tests examples", "examples public", graph("/examples/internal/e2e: /internal/x", "/internal/x:"), ""},
		{"public in an example", "examples public", graph("/examples/demo: /lkg", "/lkg:"), ""},
	} {
		t.Run(c.rule+"/"+c.name, func(t *testing.T) { wantOnly(t, importRules[c.rule](c.graph), c.want) })
	}
}

// TestRequiredModulesCatch shows the rule about go.mod requirements without a line in the allow list, and those that belong in another module.
func TestRequiredModulesCatch(t *testing.T) {
	modules := []string{".", "configsync/restart/systemd", "examples"}
	for _, c := range []struct{ dir, required, want string }{
		{".", "k8s.io/api", ""},
		{".", "github.com/google/go-cmp", ""},
		{".", "a.b/new", `go.mod: requires "a.b/new"`},
		{".", "a.b/new // indirect", ""},
		{".", "github.com/spf13/cobra", "which serves programs"},
		{".", "github.com/prometheus/common // indirect", "which serves programs"},
		{".", "github.com/coreos/go-systemd/v22 // indirect", "which serves programs"},
		{".", "golang.org/x/term", "directly"},
		{".", "golang.org/x/term // indirect", ""},
		{"examples", "github.com/spf13/cobra", ""},
		{"examples", Module, ""},
		{"examples", "github.com/coreos/go-systemd/v22", `examples/go.mod: requires "github.com/coreos`},
		{"configsync/restart/systemd", "github.com/coreos/go-systemd/v22", ""},
		{"configsync/restart/systemd", "k8s.io/client-go", `requires "k8s.io/client-go"`},
	} {
		t.Run(c.dir+" "+c.required, func(t *testing.T) {
			name, indirect := strings.CutSuffix(c.required, " // indirect")
			wantOnly(t, RequirementsPlanned(modules, c.dir, []Requirement{{name, indirect}}), c.want)
		})
	}
}

// TestModulesFound shows which modules the rules are about.
func TestModulesFound(t *testing.T) {
	tree := tree(t, "go.mod", "module x\n", "tools/go.mod", "module x/tools\n", "examples/go.mod", "module x/examples\n",
		"examples/internal/bench/go.mod", "module x/bench\n", "examples/manager/go.mod", "module x/manager\n", "lkg/testdata/go.mod", "module y\n")
	if got, want := strings.Join(tree.Modules(), " "), ". examples examples/internal/bench examples/manager tools"; got != want {
		t.Errorf("got the modules %q, want %q", got, want)
	}
	if got, want := strings.Join(tree.userModules(), " "), ". examples examples/manager"; got != want {
		t.Errorf("got the modules of users %q, want %q", got, want)
	}
}

// TestFirstModuleWins shows that a package that two modules import at two versions is as the first one has it.
func TestFirstModuleWins(t *testing.T) {
	g := Graph{Module: Module, Packages: map[string]Package{}}
	for _, list := range []string{`{"ImportPath": "a.b/c", "Imports": ["d"]}`, `{"ImportPath": "a.b/c"} {"ImportPath": "e"}`} {
		if err := g.add([]byte(list)); err != nil {
			t.Fatal(err)
		}
	}
	if len(g.Packages) != 2 || len(g.Packages["a.b/c"].Imports) != 1 {
		t.Errorf("got %v, want both packages, and the first a.b/c", g.Packages)
	}
}

// TestKitNames shows that a kit whose package has another name than its directory is found.
func TestKitNames(t *testing.T) {
	g := graph("/lkg/lkgtest: testing")
	p := g.at("lkg/lkgtest")
	p.Name = "suite"
	g.Packages[p.ImportPath] = p
	wantOnly(t, KitsApart(g), `package is named "suite"`)
}

func wantOnly(t *testing.T, got []Violation, want string) {
	t.Helper()
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("got %v, want no violation", got)
	case want != "" && (len(got) != 1 || !strings.Contains(got[0].String(), want)):
		t.Errorf("got %v, want one violation with %q", got, want)
	case want != "" && got[0].Why == "":
		t.Errorf("got %v, want a reason with it", got)
	}
}
