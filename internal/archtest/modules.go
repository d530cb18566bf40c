// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	whyRequired = "every direct requirement is a decision: give it a line in the allow list, with its reason"
	whyLibrary  = "an embedder of one package gets all requirements of the library's go.mod: what serves programs belongs in a module of its own"
)

// programModules are what the library module may not require, not even indirectly: an embedder would get it with the first package.
var programModules = []string{
	"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/prometheus", "github.com/coreos/go-systemd", "k8s.io/component-base",
	"k8s.io/kubelet", "k8s.io/kubectl", "k8s.io/apiextensions-apiserver", "sigs.k8s.io/controller-runtime",
}

// indirectModules are what the library module may have through client-go, and not by itself.
var indirectModules = []string{"golang.org/x/term"}

// A Requirement is a line of go.mod.
type Requirement struct {
	Path     string
	Indirect bool
}

// Modules lists the directories of the modules in the tree, "." for the library, in path order.
func (t *Tree) Modules() []string {
	var dirs []string
	for _, f := range t.Files {
		if path.Base(f.Path) == "go.mod" {
			dirs = append(dirs, f.Dir())
		}
	}
	slices.Sort(dirs)
	return dirs
}

// userModules are the modules that users take: the library, and those beside it that neither serve its tests nor build its tools.
func (t *Tree) userModules() []string {
	return slices.DeleteFunc(t.Modules(), func(dir string) bool { return isInternal(dir) || rootOf(dir) == "tools" })
}

// Requirements reads the requirements of the module in dir.
func Requirements(ctx context.Context, dir string) ([]Requirement, error) {
	out, err := goCommand(ctx, dir, "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var mod struct{ Require []Requirement }
	if err := json.Unmarshal(out, &mod); err != nil {
		return nil, fmt.Errorf("decoding %q: %w", filepath.Join(dir, "go.mod"), err)
	}
	return mod.Require, nil
}

// RequirementsPlanned checks the requirements of the module in dir, a path inside the repository: each direct one is in a line of the
// allow list for packages of this module, or in the list of what tests import. The library requires nothing of what serves programs.
func RequirementsPlanned(modules []string, dir string, required []Requirement) []Violation {
	var vs []Violation
	where := path.Join(dir, "go.mod")
	for _, r := range required {
		in := func(list []string) bool {
			return slices.ContainsFunc(list, func(m string) bool { return within(r.Path, m) })
		}
		switch {
		case within(r.Path, Module):
		case dir == "." && in(programModules):
			vs = append(vs, Violation{where, fmt.Sprintf("requires %q, which serves programs", r.Path), whyLibrary})
		case dir == "." && in(indirectModules) && !r.Indirect:
			vs = append(vs, Violation{where, fmt.Sprintf("requires %q directly", r.Path), whyLibrary})
		case !r.Indirect && !in(testModules) && !planned(modules, dir, r.Path):
			what := fmt.Sprintf("requires %q, which no line of the allow list for packages of this module names", r.Path)
			vs = append(vs, Violation{where, what, whyRequired})
		}
	}
	return vs
}

// planned reports whether a line of the allow list for packages of the module in dir names another module.
func planned(modules []string, dir, required string) bool {
	return slices.ContainsFunc(allowances, func(a allowance) bool {
		return moduleOf(modules, strings.TrimSuffix(a.packages, "/...")) == dir && a.allows(required)
	})
}

// moduleOf gives the innermost of the modules that holds a package.
func moduleOf(modules []string, rel string) string {
	best := "."
	for _, m := range modules {
		if within(rel, m) && len(m) > len(best) {
			best = m
		}
	}
	return best
}
