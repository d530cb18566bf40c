// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package releasecheck

import (
	"bufio"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Version is vMAJOR.MINOR.PATCH.
type Version [3]int

var versionForm = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$`)

// ParseVersion reads a version. Pre-releases are refused: a release has none.
func ParseVersion(text string) (Version, error) {
	m := versionForm.FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("version %q: want vMAJOR.MINOR.PATCH, such as v0.1.0", text)
	}
	var v Version
	for i := range v {
		n, err := strconv.Atoi(m[i+1])
		if err != nil {
			return Version{}, fmt.Errorf("version %q: %w", text, err)
		}
		v[i] = n
	}
	return v, nil
}

func (v Version) String() string { return fmt.Sprintf("v%d.%d.%d", v[0], v[1], v[2]) }

// CheckNext returns the problems of making version after the releases in tags. Tags that are no versions are ignored.
func CheckNext(version Version, tags []string) []string {
	var newest *Version
	for _, tag := range tags {
		v, err := ParseVersion(tag)
		if err == nil && (newest == nil || slices.Compare(v[:], newest[:]) > 0) {
			newest = &v
		}
	}
	if newest == nil {
		return nil
	}
	for _, next := range []Version{
		{newest[0] + 1, 0, 0}, {newest[0], newest[1] + 1, 0}, {newest[0], newest[1], newest[2] + 1},
	} {
		if version == next {
			return nil
		}
	}
	return []string{fmt.Sprintf("version %s does not follow %s, the newest tag", version, newest)}
}

var releaseHeading = regexp.MustCompile(`^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?$`)

// CheckChangelog returns the problems of a changelog: the version needs a heading with a date and a text of its own, and nothing may be
// left under Unreleased.
func CheckChangelog(changelog string, version Version) []string {
	dates, lines := map[string]string{}, map[string]int{}
	section := ""
	for line := range strings.Lines(changelog) {
		line = strings.TrimSpace(line)
		if m := releaseHeading.FindStringSubmatch(line); m != nil {
			section = m[1]
			dates[section] = m[2]
		} else if section != "" && line != "" {
			lines[section]++
		}
	}
	var problems []string
	name := strings.TrimPrefix(version.String(), "v")
	date, found := dates[name]
	switch {
	case !found:
		problems = append(problems, fmt.Sprintf("CHANGELOG.md: there is no heading %q", "## ["+name+"] - YYYY-MM-DD"))
	case date == "":
		problems = append(problems, fmt.Sprintf("CHANGELOG.md: the heading of %s has no date", name))
	case lines[name] == 0:
		problems = append(problems, fmt.Sprintf("CHANGELOG.md: the section of %s is empty", name))
	}
	if lines["Unreleased"] > 0 {
		problems = append(problems, "CHANGELOG.md: the section Unreleased is not empty")
	}
	return problems
}

// A Module is what a release needs to know of a go.mod.
type Module struct {
	Path     string
	Requires map[string]string // version by module path
	Replaces []string          // module paths on the left of a replacement
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

// CheckModules returns the problems of modules that users import, of which the first is the library. The library replaces nothing. The
// others replace their siblings alone, for development, and require the library. None depends on a pre-release.
func CheckModules(modules []Module) []string {
	if len(modules) == 0 {
		return []string{"go.mod: there is no module to release"}
	}
	library := modules[0].Path
	var problems []string
	for i, m := range modules {
		for path, version := range m.Requires {
			if unfinished.MatchString(version) {
				problems = append(problems, fmt.Sprintf("module %s requires the pre-release %s %s", m.Path, path, version))
			}
		}
		for _, path := range m.Replaces {
			if i == 0 || path != library && !strings.HasPrefix(path, library+"/") {
				problems = append(problems, fmt.Sprintf("module %s replaces %s: its users would not", m.Path, path))
			}
		}
		if _, found := m.Requires[library]; i > 0 && !found {
			problems = append(problems, fmt.Sprintf("module %s does not require %s", m.Path, library))
		}
	}
	slices.Sort(problems)
	return problems
}
