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

func TestCheckModules(t *testing.T) {
	const library = "module example.com/lib\n\ngo 1.25.0\n\nrequire (\n\tk8s.io/api v0.34.0\n\tk8s.io/utils v0.0.0-20250604170112-4c0f3b243397 // indirect\n)\n"
	const nested = "module example.com/lib/nested\nrequire example.com/lib v0.1.0\nreplace example.com/lib => ../\n"
	for name, c := range map[string]struct{ first, second, problem string }{
		"both good":             {library, nested, ""},
		"pre-release":           {strings.Replace(library, "v0.34.0", "v0.38.0-alpha.1", 1), nested, "requires the pre-release k8s.io/api v0.38.0-alpha.1"},
		"library replaces":      {library + "\nreplace example.com/lib/x => ./x\n", nested, "module example.com/lib replaces"},
		"nested replaces other": {library, nested + "replace (\n\tk8s.io/api => k8s.io/api v0.33.0\n)\n", "replaces k8s.io/api"},
		"nested is alone":       {library, "module example.com/lib/nested\n", "does not require example.com/lib"},
	} {
		problems := releasecheck.CheckModules([]releasecheck.Module{releasecheck.ParseModule(c.first), releasecheck.ParseModule(c.second)})
		found := slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.problem) })
		if (len(problems) == 0) != (c.problem == "") || len(problems) > 0 && !found {
			t.Errorf("%s: %q, want %q", name, problems, c.problem)
		}
	}
}
