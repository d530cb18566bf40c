// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package releasecheck_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/releasecheck"
)

func TestCheckNext(t *testing.T) {
	for _, c := range []struct {
		version string
		tags    []string
		ok      bool
	}{
		{"v0.1.0", nil, true},
		{"v0.1.0", []string{"examples/v0.3.0", "nightly"}, true},
		{"v0.2.0", []string{"v0.1.0", "v0.1.9"}, true},
		{"v0.1.10", []string{"v0.1.9"}, true},
		{"v1.0.0", []string{"v0.12.3"}, true},
		{"v0.1.0", []string{"v0.1.0"}, false},
		{"v0.1.1", []string{"v0.2.0"}, false},
		{"v0.4.0", []string{"v0.2.0"}, false},
		{"v0.3.1", []string{"v0.2.0"}, false},
	} {
		v, err := releasecheck.ParseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		if problems := releasecheck.CheckNext(v, c.tags); (len(problems) == 0) != c.ok {
			t.Errorf("%s after %v: %v, want ok %t", c.version, c.tags, problems, c.ok)
		}
	}
	for _, text := range []string{"", "0.1.0", "v0.1", "v0.1.0-rc.1", "v01.0.0", "v0.1.99999999999999999999"} {
		if _, err := releasecheck.ParseVersion(text); err == nil {
			t.Errorf("%q is taken for a version", text)
		}
	}
}

func TestCheckChangelog(t *testing.T) {
	for name, c := range map[string]struct{ changelog, problem string }{
		"complete":     {"# Changelog\n\nIntro.\n\n## [Unreleased]\n\n## [0.1.0] - 2026-12-01\n\n- All.\n", ""},
		"no heading":   {"## [Unreleased]\n", "no heading"},
		"no date":      {"## [0.1.0]\n\n- All.\n", "no date"},
		"empty":        {"## [0.1.0] - 2026-12-01\n\n## [0.0.9] - 2026-11-01\n- x\n", "is empty"},
		"left behind":  {"## [Unreleased]\n- x\n\n## [0.1.0] - 2026-12-01\n- y\n", "Unreleased is not empty"},
		"another date": {"## [0.1.0] - tomorrow\n\n- All.\n", "no heading"},
	} {
		problems := strings.Join(releasecheck.CheckChangelog(c.changelog, releasecheck.Version{0, 1, 0}), "; ")
		if (problems == "") != (c.problem == "") || !strings.Contains(problems, c.problem) {
			t.Errorf("%s: %q, want %q", name, problems, c.problem)
		}
	}
}

func TestPrepareChangelog(t *testing.T) {
	version := releasecheck.Version{0, 2, 0}
	const written = "# Changelog\n\n## [Unreleased]\n\n- New.\n\n## [0.1.0] - 2026-12-01\n\n- All.\n"
	got, err := releasecheck.PrepareChangelog(written, version, "2027-01-02")
	want := strings.Replace(written, "\n\n- New.", "\n\n## [0.2.0] - 2027-01-02\n\n- New.", 1)
	if err != nil || got != want {
		t.Errorf("without a heading: %q, %v; want %q", got, err, want)
	}
	if problems := releasecheck.CheckChangelog(got, version); len(problems) != 0 {
		t.Errorf("what it wrote has the problems %q", problems)
	}
	again, err := releasecheck.PrepareChangelog(got, version, "2027-01-03")
	if want := strings.Replace(got, "01-02", "01-03", 1); err != nil || again != want {
		t.Errorf("with a heading: %q, %v; want %q", again, err, want)
	}
	if _, err := releasecheck.PrepareChangelog("# Changelog\n", version, "2027-01-02"); err == nil {
		t.Error("a changelog without a section Unreleased: no error")
	}
}

func TestCheckModules(t *testing.T) {
	const library = "module example.com/lib\n\ngo 1.25.0\n\nrequire (\n\tk8s.io/api v0.34.0\n" +
		"\tk8s.io/utils v0.0.0-20250604170112-4c0f3b243397 // indirect\n)\n"
	const nested = "module example.com/lib/nested\nrequire example.com/lib v0.1.0\nreplace example.com/lib => ../\n"
	preRelease := strings.Replace(library, "v0.34.0", "v0.38.0-alpha.1", 1)
	for name, c := range map[string]struct{ first, second, problem string }{
		"both good":             {library, nested, ""},
		"pre-release":           {preRelease, nested, "requires the pre-release k8s.io/api v0.38.0-alpha.1"},
		"library replaces":      {library + "\nreplace example.com/lib/x => ./x\n", nested, "module example.com/lib replaces"},
		"nested replaces other": {library, nested + "replace (\n\tk8s.io/api => k8s.io/api v0.33.0\n)\n", "replaces k8s.io/api"},
		"nested is alone":       {library, "module example.com/lib/nested\n", "does not require example.com/lib"},
		"another version":       {library, strings.Replace(nested, "v0.1.0", "v0.0.0", 1), "lib v0.0.0, want v0.1.0"},
		"sibling untagged":      {library, nested + "require example.com/lib/x v0.1.0\n", "lib/x, which is not released"},
	} {
		modules := []releasecheck.Module{releasecheck.ParseModule(c.first), releasecheck.ParseModule(c.second)}
		problems := releasecheck.CheckModules(modules, releasecheck.Version{0, 1, 0})
		found := slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.problem) })
		if (len(problems) == 0) != (c.problem == "") || len(problems) > 0 && !found {
			t.Errorf("%s: %q, want %q", name, problems, c.problem)
		}
	}
}

func TestEmptyAliases(t *testing.T) {
	got, err := releasecheck.EmptyAliases("# x\naliases:\n  b: []\n  full: [ann]\n  a:\n")
	if err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("empty aliases: %q, %v; want a and b", got, err)
	}
	if _, err := releasecheck.EmptyAliases("aliases: [a]\n"); err == nil {
		t.Error("aliases that are a list: no error")
	}
}
