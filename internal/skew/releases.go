// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Module is the path of the library module.
const Module = "github.com/belayproject/belay"

// A Library is one release of the k8s.io modules that the library module is built with.
type Library struct {
	Version string // of k8s.io/api, k8s.io/apimachinery and k8s.io/client-go
	MayFail bool   // a failure is printed, and fails nothing: the release is not out
}

// Libraries returns the releases, the oldest first. The first one is the floor that go.mod requires.
func Libraries() []Library {
	return []Library{
		{Version: "v0.34.0"}, {Version: "v0.35.4"}, {Version: "v0.36.3"}, {Version: "v0.37.2"},
		{Version: "v0.38.0-alpha.2", MayFail: true},
	}
}

// An Embedder is a release of controller-runtime, with the k8s.io release that it requires.
type Embedder struct{ Runtime, Kubernetes string }

// Embedders returns the releases of controller-runtime that belay builds beside, the oldest first.
func Embedders() []Embedder {
	return []Embedder{
		{"v0.22.5", "v0.34.3"}, {"v0.23.3", "v0.35.0"}, {"v0.24.1", "v0.36.0"}, {"v0.25.2", "v0.37.0"},
	}
}

var requirement = regexp.MustCompile(`(?m)^(?:require)?\s+(\S+) (v\S+)`)

// Required returns the version of a module that the go.mod file at path requires.
func Required(path, module string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading a go.mod: %w", err)
	}
	for _, m := range requirement.FindAllStringSubmatch(string(text), -1) {
		if m[1] == module {
			return m[2], nil
		}
	}
	return "", fmt.Errorf("%q requires no %s", path, module)
}

var goLine = regexp.MustCompile(`(?m)^go (\S+)$`)

// GoLine returns the Go release that the go.mod file at path asks for.
func GoLine(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading a go.mod: %w", err)
	}
	m := goLine.FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%q has no line go", path)
	}
	return string(m[1]), nil
}

// Servers returns the releases of Kubernetes that internal/controlplane pins below root, the oldest first.
func Servers(root string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(root, "internal", "controlplane", "v*", "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("listing the pins of servers: %w", err)
	}
	slices.Sort(files)
	var releases []string
	for _, file := range append(files, filepath.Join(root, "internal", "controlplane", "go.mod")) {
		version, err := Required(file, "k8s.io/kubernetes")
		if err != nil {
			return nil, err
		}
		releases = append(releases, strings.TrimPrefix(version, "v"))
	}
	return releases, nil
}

// Minor returns the first two numbers of a version: 0.35 of v0.35.4, and 1.36 of 1.36.3.
func Minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// Root returns the directory of the library module that the working directory is in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.Contains(string(text), "module "+Module+"\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("the working directory is not in module %s", Module)
		}
		dir = parent
	}
}
