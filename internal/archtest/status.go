// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const whyStatus = "a reader takes the package tables of doc.go and README.md as promises: what they do not call planned has to be there"

var (
	docStatus    = regexp.MustCompile(`^//\t([a-z0-9/]+)\s+(stable|beta|experimental|planned)\b`)
	readmeStatus = regexp.MustCompile("^\\| (?:\\[)?`([a-z0-9/]+)`.*\\| (stable|beta|experimental|planned) \\|$")
)

// StatusTrue checks the package tables of doc.go and README.md: each lists every package that users import by its top-level
// name, doc.go those below them as well, and whatever they do not call planned exists.
func StatusTrue(t *Tree) []Violation {
	tables := map[string]*regexp.Regexp{"doc.go": docStatus, "README.md": readmeStatus}
	var vs []Violation
	for _, f := range t.Files {
		if pattern := tables[f.Path]; pattern != nil {
			vs = append(vs, t.statusOf(f, pattern)...)
		}
	}
	return vs
}

func (t *Tree) statusOf(f *File, pattern *regexp.Regexp) []Violation {
	dirs := t.byDir()
	missing := slices.Clone(publicRoots)
	if f.Path == "doc.go" {
		missing = append(missing, t.below()...)
	}
	var vs []Violation
	for i, line := range strings.Split(string(f.Text), "\n") {
		m := pattern.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		missing = slices.DeleteFunc(missing, func(p string) bool { return p == m[1] })
		if m[2] != "planned" && len(dirs[m[1]]) == 0 {
			vs = append(vs, Violation{fmt.Sprintf("%s:%d", f.Path, i+1), fmt.Sprintf("calls %q %s, but there is no such package", m[1], m[2]), whyStatus})
		}
	}
	for _, p := range missing {
		vs = append(vs, Violation{f.Path, fmt.Sprintf("has no line for package %q in its table", p), whyStatus})
	}
	return vs
}

// below are the packages below the roots that users import, but for test kits.
func (t *Tree) below() (all []string) {
	t.eachDir(func(dir string, files []*File) {
		root, rest, _ := strings.Cut(dir, "/")
		hidden := rest == "" || isKit(dir) || slices.Contains(strings.Split(rest, "/"), "internal")
		if isPublicRoot(root) && !hidden && slices.ContainsFunc(files, func(f *File) bool { return !f.isTest() && !f.isMain() }) {
			all = append(all, dir)
		}
	})
	return all
}
