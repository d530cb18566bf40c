// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package releasecheck_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/internal/releasecheck"
)

const root = "../.."

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// moduleDirs are the directories of all modules of the repository, with a slash before each.
func moduleDirs(t *testing.T) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(root, func(file string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != root {
			return filepath.SkipDir
		}
		if err == nil && d.Name() == "go.mod" {
			dirs = append(dirs, path.Join("/", strings.TrimPrefix(filepath.Dir(file), root)))
		}
		return err
	})
	if err != nil || len(dirs) < 10 {
		t.Fatalf("the modules are %q, %v", dirs, err)
	}
	return dirs
}

// TestReleasedModulesAreNamed: each module that users import is there, requires no module that has no tag, and has its
// tag in the papers by which a release is made.
func TestReleasedModulesAreNamed(t *testing.T) {
	var modules []releasecheck.Module
	for _, dir := range releasecheck.ReleasedModules() {
		m := releasecheck.ParseModule(read(t, path.Join(dir, "go.mod")))
		modules = append(modules, m)
		for _, paper := range []string{"VERSIONING.md", "RELEASE.md"} {
			if tag := "`" + path.Join(dir, "vX.Y.Z") + "`"; !strings.Contains(read(t, paper), tag) {
				t.Errorf("%s does not name the tag %s", paper, tag)
			}
		}
	}
	for _, m := range modules {
		for _, sibling := range m.RequiredSiblings(modules[0].Path) {
			if !slices.ContainsFunc(modules, func(other releasecheck.Module) bool { return other.Path == sibling }) {
				t.Errorf("%s requires %s, which has no tag", m.Path, sibling)
			}
		}
	}
}

// TestModulesOfOneVersion: all modules of the repository require their siblings at one version. The go command would
// ask for another go.mod otherwise.
func TestModulesOfOneVersion(t *testing.T) {
	versions := map[string][]string{}
	library := releasecheck.ParseModule(read(t, "go.mod")).Path
	for _, dir := range moduleDirs(t) {
		m := releasecheck.ParseModule(read(t, path.Join(dir, "go.mod")))
		for _, sibling := range m.RequiredSiblings(library) {
			version := m.Requires[sibling]
			versions[version] = append(versions[version], dir)
		}
	}
	if len(versions) != 1 {
		t.Errorf("modules by the version of what they require of this repository: %q, want one version; "+
			"make release-prepare VERSION=v0.1.0 writes it", versions)
	}
}

// TestDependabotKnowsEachModule: each module is in one entry.
func TestDependabotKnowsEachModule(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	if err := yaml.Unmarshal([]byte(read(t, ".github/dependabot.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for _, u := range config.Updates {
		if u.Ecosystem == "gomod" {
			patterns = append(patterns, u.Directories...)
		}
	}
	modules := moduleDirs(t)
	for _, dir := range modules {
		if n := len(slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return !matches(t, p, dir) })); n != 1 {
			t.Errorf("module %s is in %d entries of dependabot.yaml, want 1", dir, n)
		}
	}
	for _, p := range patterns {
		if !slices.ContainsFunc(modules, func(dir string) bool { return matches(t, p, dir) }) {
			t.Errorf("dependabot.yaml names %s, where there is no module", p)
		}
	}
}

func matches(t *testing.T, pattern, dir string) bool {
	t.Helper()
	ok, err := path.Match(pattern, dir)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// A workflow is what the tests need of a file below .github/workflows.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Concurrency map[string]any    `json:"concurrency"`
	Jobs        map[string]struct {
		Permissions map[string]string `json:"permissions"`
		Minutes     int               `json:"timeout-minutes"`
		Strategy    struct {
			Matrix struct {
				Target  []string `json:"target"`
				Release []string `json:"release"`
			} `json:"matrix"`
		} `json:"strategy"`
		Steps []struct {
			Uses string `json:"uses"`
			Run  string `json:"run"`
		} `json:"steps"`
	} `json:"jobs"`
}

func readWorkflow(t *testing.T, file string) workflow {
	t.Helper()
	var w workflow
	if err := yaml.Unmarshal([]byte(read(t, file)), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

var pinned = regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`)

// TestWorkflowsAreCareful: a workflow reads and writes no more than it has to, ends, does not run twice at a time, and
// runs no action that its author can change afterwards. A tag's name reaches the shell as a variable alone.
func TestWorkflowsAreCareful(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yaml"))
	if err != nil || len(files) != 3 {
		t.Fatalf("the workflows are %q, %v", files, err)
	}
	for _, file := range files {
		file, _ := filepath.Rel(root, file)
		w := readWorkflow(t, file)
		if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
			t.Errorf("%s has the permissions %v, want to read contents", file, w.Permissions)
		}
		if w.Concurrency["group"] == nil {
			t.Errorf("%s may run twice at a time", file)
		}
		for name, job := range w.Jobs {
			if job.Minutes == 0 {
				t.Errorf("%s: job %s has no limit of time", file, name)
			}
			if len(job.Permissions) > 0 && name != "publish" {
				t.Errorf("%s: job %s has permissions of its own", file, name)
			}
			for _, step := range job.Steps {
				if step.Uses != "" && !pinned.MatchString(step.Uses) {
					t.Errorf("%s: %s is not pinned to a commit", file, step.Uses)
				}
				if strings.Contains(step.Run, "${{ github.") {
					t.Errorf("%s: the shell of job %s reads an expression: %s", file, name, step.Run)
				}
			}
		}
	}
}

var recipe = regexp.MustCompile(`(?m)^([a-z-]+):.*## `)

// TestNightlyRunsWhatIsThere: each target of the nightly run is a target of make, and the skew tests run on each
// release of the servers that is pinned, in a job of its own.
func TestNightlyRunsWhatIsThere(t *testing.T) {
	var targets, releases []string
	for _, m := range recipe.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets = append(targets, m[1])
	}
	w := readWorkflow(t, ".github/workflows/nightly.yaml")
	for _, target := range w.Jobs["nightly"].Strategy.Matrix.Target {
		if !slices.Contains(targets, target) {
			t.Errorf("the nightly run makes %s, which the Makefile does not have", target)
		}
	}
	pins, err := filepath.Glob(filepath.Join(root, "internal/controlplane/v*/go.mod"))
	if err != nil || len(pins) == 0 {
		t.Fatalf("the pins of servers are %q, %v", pins, err)
	}
	for _, file := range append(pins, filepath.Join(root, "internal/controlplane/go.mod")) {
		file, _ := filepath.Rel(root, file)
		version, err := releasecheck.ParseVersion(releasecheck.ParseModule(read(t, file)).Requires["k8s.io/kubernetes"])
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		releases = append(releases, fmt.Sprintf("%d.%d", version[0], version[1]))
	}
	if got := w.Jobs["skew"].Strategy.Matrix.Release; !slices.Equal(got, releases) {
		t.Errorf("the nightly run has the skew tests of %q, want %q", got, releases)
	}
}
