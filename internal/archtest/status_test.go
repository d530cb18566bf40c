// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"strings"
	"testing"
)

// TestStatusTablesCatch shows tables that claim a package that does not exist, or pass one over.
func TestStatusTablesCatch(t *testing.T) {
	var doc, readme strings.Builder
	for _, p := range publicRoots {
		doc.WriteString("//\t" + p + "  planned  x\n")
		readme.WriteString("| `" + p + "` | x | planned |\n")
	}
	planned := "// Package belay is.\n//\n" + doc.String() + "package belay\n"
	beta := func(s, p string) string {
		s = strings.Replace(s, "//\t"+p+"  planned", "//\t"+p+"  beta", 1)
		return strings.Replace(s, "`"+p+"` | x | planned", "`"+p+"` | x | beta", 1)
	}
	for _, c := range []struct {
		name  string
		files []string
		want  string
	}{
		{"all planned", []string{"doc.go", planned, "README.md", readme.String()}, ""},
		{"one there", []string{"doc.go", beta(planned, "lkg"), "lkg/a.go", "package lkg\n"}, ""},
		{"claimed in doc.go", []string{"doc.go", beta(planned, "lkg")}, `doc.go:4: calls "lkg" beta`},
		{"claimed in the README", []string{"README.md", beta(readme.String(), "drain")}, `README.md:5: calls "drain" beta`},
		{"passed over below", []string{"doc.go", planned, "drain/kube/a.go", "package kube\n"}, `no line for package "drain/kube"`},
		{"a kit and what is internal", []string{"doc.go", planned, "drain/draintest/a.go", "package draintest\n", "drain/internal/x/a.go", "package x\n"}, ""},
		{"passed over", []string{"README.md", strings.Replace(readme.String(), "`drain`", "drain", 1)}, `no line for package "drain"`},
	} {
		t.Run(c.name, func(t *testing.T) { wantOnly(t, StatusTrue(tree(t, c.files...)), c.want) })
	}
}
