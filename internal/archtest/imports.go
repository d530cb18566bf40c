// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

const (
	whyAlone = "root packages do not import each other, except configsync -> lkg and anything -> */v1alpha1: each must work alone, and no circle can " +
		"exist; where two meet, the consumer declares a small interface"
	whyHeavy = "these modules break their users with every minor version; no package that a user imports may reach them"
	whyKit   = "test kits are packages of their own, and only they and internal packages import testing: production binaries must not link it"
	whyCopy  = "a program that a user copies must build outside this repository"
	whyPlan  = "every direct requirement is a decision: give it a line in the allow list, with its reason"
)

// RootsAlone checks that no root package reaches another one, but for the crossings that the design names. It reports the
// shortest chain, also through internal packages.
func RootsAlone(g Graph) []Violation {
	var vs []Violation
	for _, rel := range g.ownPaths() {
		root := rootOf(rel)
		if !isPublicRoot(root) {
			continue
		}
		foreign := func(importPath string) bool {
			to, own := g.own(importPath)
			return own && isPublicRoot(rootOf(to)) && rootOf(to) != root && !crosses(root, to)
		}
		// A chain through another package of the same root is that package's own violation.
		through := func(importPath string) bool {
			to, own := g.own(importPath)
			return own && rootOf(to) != root
		}
		if c := g.chain(g.at(rel).ImportPath, foreign, through); c != nil {
			vs = append(vs, Violation{rel, "imports another root package: " + g.print(c), whyAlone})
		}
	}
	return vs
}

func crosses(root, to string) bool {
	return path.Base(to) == "v1alpha1" || crossings[root] == to
}

// ImportsAllowed checks every package's imports of other modules, and of internal packages, against the allow list.
func ImportsAllowed(g Graph) []Violation {
	var vs []Violation
	for _, rel := range g.ownPaths() {
		a, ok := allowanceFor(rel)
		if !ok {
			vs = append(vs, Violation{display(rel), "has no line in the allow list", whyPlan})
			continue
		}
		for _, imp := range g.at(rel).Imports {
			to, own := g.own(imp)
			switch {
			case own && isInternal(to) && !a.internal && !within(rel, "examples"):
				if c := g.beyond(imp, a); c != nil {
					what := fmt.Sprintf("imports the internal package %q, which imports more than it may itself: %s", to, g.print(c))
					vs = append(vs, Violation{display(rel), what, a.why})
				}
			case !own && !g.Packages[imp].Standard && !a.allows(imp):
				vs = append(vs, Violation{display(rel), fmt.Sprintf("imports %q", imp), a.why})
			}
		}
	}
	return vs
}

// beyond gives the shortest chain from an internal package to an import that the allowance does not have, or nil.
func (g Graph) beyond(importPath string, a allowance) []string {
	more := func(p string) bool {
		to, own := g.own(p)
		return own && !isInternal(to) || !own && !g.Packages[p].Standard && !a.allows(p)
	}
	return g.chain(importPath, more, func(p string) bool { _, own := g.own(p); return own })
}

// NothingHeavy checks that no package for users reaches a heavy module, directly or not.
func NothingHeavy(g Graph) []Violation {
	isHeavy := func(importPath string) bool {
		return slices.ContainsFunc(heavy, func(m string) bool { return within(importPath, m) })
	}
	var vs []Violation
	for _, rel := range g.ownPaths() {
		if !isPublicRoot(rootOf(rel)) {
			continue
		}
		if c := g.chain(g.at(rel).ImportPath, isHeavy, func(string) bool { return true }); c != nil {
			vs = append(vs, Violation{rel, "reaches a heavy module: " + g.print(c), whyHeavy})
		}
	}
	return vs
}

// KitsApart checks that testing, and everything that exists for tests, is imported by test kits and internal packages only.
func KitsApart(g Graph) []Violation {
	var vs []Violation
	for _, rel := range g.ownPaths() {
		if isKit(rel) && g.at(rel).Name != path.Base(rel) {
			vs = append(vs, Violation{rel, fmt.Sprintf("is a test kit but its package is named %q", g.at(rel).Name), whyKit})
		}
		if isKit(rel) || isInternal(rel) {
			continue
		}
		for _, imp := range g.at(rel).Imports {
			if g.isForTests(imp) {
				vs = append(vs, Violation{display(rel), fmt.Sprintf("imports %q outside its tests", imp), whyKit})
			}
		}
	}
	return vs
}

// isForTests reports whether a package is of use to tests alone: a test kit, the packages of the standard library for tests,
// and internal packages that import those.
func (g Graph) isForTests(importPath string) bool {
	rel, own := g.own(importPath)
	if !own {
		return within(importPath, "testing") || importPath == "net/http/httptest"
	}
	return isKit(rel) || isInternal(rel) && slices.ContainsFunc(g.at(rel).Imports, g.isForTests)
}

// ExamplesPublic checks that programs import nothing internal of the library's module. What is internal to examples serves their tests.
func ExamplesPublic(g Graph) []Violation {
	var vs []Violation
	for _, rel := range g.ownPaths() {
		if !within(rel, "examples") || within(rel, "examples/internal") {
			continue
		}
		for _, imp := range g.at(rel).Imports {
			if to, own := g.own(imp); own && isInternal(to) && !within(to, "examples") {
				vs = append(vs, Violation{rel, fmt.Sprintf("imports the internal package %q", to), whyCopy})
			}
		}
	}
	return vs
}

// print shows a chain with the module's own packages shortened.
func (g Graph) print(chain []string) string {
	short := make([]string, len(chain))
	for i, p := range chain {
		short[i] = p
		if rel, own := g.own(p); own {
			short[i] = display(rel)
		}
	}
	return strings.Join(short, " -> ")
}

func display(rel string) string {
	if rel == "" {
		return "."
	}
	return rel
}
