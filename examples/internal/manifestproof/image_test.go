// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

const module = "github.com/belayproject/belay"

// instructions are those of the Containerfile, one a line, without comments.
func instructions(t *testing.T) (all []string) {
	t.Helper()
	text := strings.ReplaceAll(read(t, root+"/examples/Containerfile"), "\\\n", " ")
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, strings.Join(strings.Fields(line), " "))
		}
	}
	return all
}

// with are the instructions that begin with a text, without it.
func with(all []string, prefix string) (rest []string) {
	for _, line := range all {
		if after, ok := strings.CutPrefix(line, prefix); ok {
			rest = append(rest, after)
		}
	}
	return rest
}

// room is the folder that is copied for a package of the module: the whole tree of what users import, and of internal, where tests and their kits are too,
// the package alone.
func room(path string) string {
	parts := strings.Split(path, "/")
	if parts[0] == "internal" {
		return path
	}
	return parts[0]
}

// What the mains are made of is what is copied into the build, no package less, and no test or tool.
func TestImageHasWhatItIsBuiltOf(t *testing.T) {
	var copied []string
	for _, c := range with(instructions(t), "COPY ") {
		from, to, _ := strings.Cut(c, " ")
		if !strings.HasPrefix(c, "--") && "./"+from == to {
			copied = append(copied, from)
		}
	}
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./controller", "./agent")
	command.Dir = filepath.Join(root, "examples")
	out, err := command.Output()
	must(t, err)
	used := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), module+"/"); ok {
			used[room(path)] = true
		}
	}
	if len(used) < 5 {
		t.Fatalf("the mains use %v: nothing is shown", used)
	}
	for top := range used {
		if !slices.Contains(copied, top) {
			t.Errorf("%s is used, and not copied into the build", top)
		}
	}
	for _, top := range copied {
		if !used[top] {
			t.Errorf("%s is copied into the build, and the mains do not use it", top)
		}
	}
}

// The images are as the manifests take them to be: static programs of the compiler that go.mod names, with their version and time zones, and a
// controller that is nobody.
func TestImagesAreMinimal(t *testing.T) {
	all := instructions(t)
	release := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, root+"/examples/go.mod"))
	if got := with(all, "ARG GO_VERSION="); len(got) != 1 || got[0] != release[1] {
		t.Errorf("GO_VERSION is %q, want %s, which go.mod asks for", got, release[1])
	}
	bases := with(all, "FROM ")
	want := []string{"--platform=$BUILDPLATFORM golang:${GO_VERSION} AS build", "scratch AS controller", "busybox:1.37 AS agent"}
	if !slices.Equal(bases, want) {
		t.Errorf("the images are made from %q, want %q", bases, want)
	}
	manifest, commands := build(t, "controller"), strings.Join(with(all, "RUN "), "\n")
	for _, part := range []string{"CGO_ENABLED=0", "-trimpath", "-tags timetzdata", "-X k8s.io/component-base/version.gitVersion=${VERSION}"} {
		if !strings.Contains(commands, part) {
			t.Errorf("the build lacks %q", part)
		}
	}
	pod := find[appsv1.Deployment](t, manifest, "Deployment", controllerAccount).Spec.Template.Spec
	if users := with(all, "USER "); len(users) != 1 || users[0] != "65532:65532" || *pod.SecurityContext.RunAsUser != 65532 {
		t.Errorf("the users are %q in the images and %d in the Deployment, want 65532 in both", users, *pod.SecurityContext.RunAsUser)
	}
	for _, entry := range with(all, "ENTRYPOINT ") {
		program := strings.Trim(entry, `[]"`)
		if !slices.ContainsFunc(with(all, "COPY --from=build "), func(c string) bool { return filepath.Base(strings.Fields(c)[1]) == filepath.Base(program) }) {
			t.Errorf("the program %q is not copied from the build", program)
		}
	}
}

// Whoever builds as the docs say gets programs that start, and whoever gives another version is told: component-base ends a program at its start whose version
// does not begin like v1.2.3.
func TestImagesHaveAVersionThatStarts(t *testing.T) {
	guard, _, found := strings.Cut(strings.Join(with(instructions(t), "RUN "), "\n"), "CGO_ENABLED=0")
	if _, guard, _ = strings.Cut(guard, "\n"); !found || !strings.Contains(guard, "${VERSION}") {
		t.Fatalf("the build begins with %q, which checks no version", guard)
	}
	check := func(version string) (string, error) {
		command := exec.CommandContext(t.Context(), "sh", "-c", "VERSION="+version+"; "+guard+" echo \"$VERSION\"")
		command.Dir = root
		out, err := command.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	starts := regexp.MustCompile(`^v(\d+\.\d+\.\d+)`) // as component-base/metrics asks for
	for _, file := range []string{"examples/Containerfile", "docs/getting-started.md", "docs/operating.md"} {
		told := regexp.MustCompile(`--build-arg VERSION=(\S*\([^)]*\))`).FindAllStringSubmatch(read(t, root+"/"+file), -1)
		if len(told) != 2 {
			t.Errorf("%s has %d commands with a version, want that of the controller and that of the agent", file, len(told))
		}
		for _, m := range told {
			if got, err := check(m[1]); err != nil || !starts.MatchString(got) {
				t.Errorf("%s: %s is %q: %v", file, m[1], got, err)
			}
		}
	}
	for _, version := range []string{"", "693f540", "1.2.3", "v1.2", "v1.2.3x"} {
		if got, err := check("'" + version + "'"); err == nil || !strings.Contains(got, "--build-arg VERSION=v1.2.3") || !strings.Contains(got, version) {
			t.Errorf("version %q: got %q, %v, want to be told", version, got, err)
		}
	}
}
