// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package releasecheck

import (
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

// PrepareChangelog returns the changelog with a heading of the version and the day. Where there is none, it stands
// below Unreleased, so that what was written there is the text of the release.
func PrepareChangelog(changelog string, version Version, day string) (string, error) {
	const unreleased = "## [Unreleased]\n"
	begin := "## [" + strings.TrimPrefix(version.String(), "v") + "]"
	var out strings.Builder
	found := false
	for line := range strings.Lines(changelog) {
		if strings.HasPrefix(line, begin) {
			line, found = begin+" - "+day+"\n", true
		}
		out.WriteString(line)
	}
	if found {
		return out.String(), nil
	}
	before, after, ok := strings.Cut(changelog, unreleased)
	if !ok {
		return "", fmt.Errorf("CHANGELOG.md has no heading %q", strings.TrimSpace(unreleased))
	}
	return before + unreleased + "\n" + begin + " - " + day + "\n" + after, nil
}
