// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package releasecheck

import (
	"bufio"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// ReleasedModules returns the directories of the modules that users import, the library first. Each is tagged.
func ReleasedModules() []string {
	return []string{".", "configsync/restart/systemd", "examples/metrics", "examples"}
}

// TagOf returns the tag by which the go command finds a version of the module in dir.
func TagOf(dir string, version Version) string {
	return path.Join(dir, version.String())
}

// A Module is what a release needs to know of a go.mod.
type Module struct {
	Path     string
	Requires map[string]string // version by module path
	Replaces []string          // module paths on the left of a replacement
}

// RequiredSiblings returns what the module requires of the modules of a library's repository, sorted.
func (m Module) RequiredSiblings(library string) []string {
	required := slices.Sorted(maps.Keys(m.Requires))
	return slices.DeleteFunc(required, func(path string) bool { return !isSibling(path, library) })
}

// ParseModule reads a go.mod.
func ParseModule(text string) Module {
	m := Module{Requires: map[string]string{}}
	block := ""
	scanner := bufio.NewScanner(strings.NewReader(text))
	for scanner.Scan() {
		line, _, _ := strings.Cut(scanner.Text(), "//")
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
			continue
		case fields[0] == ")":
			block = ""
			continue
		case len(fields) == 2 && fields[1] == "(":
			block = fields[0]
			continue
		case block == "":
			block, fields = fields[0], fields[1:]
			m.read(block, fields)
			block = ""
			continue
		}
		m.read(block, fields)
	}
	return m
}

func (m *Module) read(verb string, fields []string) {
	switch {
	case verb == "module" && len(fields) == 1:
		m.Path = fields[0]
	case verb == "require" && len(fields) >= 2:
		m.Requires[fields[0]] = fields[1]
	case verb == "replace" && len(fields) >= 3:
		m.Replaces = append(m.Replaces, fields[0])
	}
}

var unfinished = regexp.MustCompile(`-(alpha|beta|rc)\b`)

// CheckModules returns the problems of releasing modules at a version. They are those that users import, the library
// first. The library replaces nothing. The others replace their siblings alone, for development, and require the
// library. What they require of their siblings is released with them, at the same version. None depends on a
// pre-release.
func CheckModules(modules []Module, version Version) []string {
	if len(modules) == 0 {
		return []string{"go.mod: there is no module to release"}
	}
	library := modules[0].Path
	siblings := map[string]bool{}
	for _, m := range modules {
		siblings[m.Path] = true
	}
	var problems []string
	for i, m := range modules {
		for required, at := range m.Requires {
			if problem := checkRequirement(required, at, library, siblings, version); problem != "" {
				problems = append(problems, fmt.Sprintf("module %s requires %s", m.Path, problem))
			}
		}
		for _, replaced := range m.Replaces {
			if i == 0 || !isSibling(replaced, library) {
				problems = append(problems, fmt.Sprintf("module %s replaces %s: its users would not", m.Path, replaced))
			}
		}
		if _, found := m.Requires[library]; i > 0 && !found {
			problems = append(problems, fmt.Sprintf("module %s does not require %s", m.Path, library))
		}
	}
	slices.Sort(problems)
	return problems
}

// checkRequirement returns what is wrong with requiring a module at a version, or nothing.
func checkRequirement(required, at, library string, siblings map[string]bool, version Version) string {
	switch {
	case unfinished.MatchString(at):
		return fmt.Sprintf("the pre-release %s %s", required, at)
	case !isSibling(required, library):
		return ""
	case !siblings[required]:
		return required + ", which is not released"
	case at != version.String():
		return fmt.Sprintf("%s %s, want %s, which make release-prepare writes", required, at, version)
	default:
		return ""
	}
}

func isSibling(module, library string) bool {
	return module == library || strings.HasPrefix(module, library+"/")
}
