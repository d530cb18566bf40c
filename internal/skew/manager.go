// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// managerDir is the module of the example of a controller-runtime manager.
const managerDir = "examples/manager"

// oldestManager is the first release of controller-runtime with what [managerDir] calls: a recorder of the new API for
// events.
const oldestManager = "0.23"

// ManagerRuntimes returns the releases of controller-runtime that examples/manager is tested with, the oldest first.
// The last one is that of its go.mod.
func ManagerRuntimes() []Embedder {
	all := Embedders()
	first := slices.IndexFunc(all, func(e Embedder) bool { return Minor(e.Runtime) == oldestManager })
	return all[max(first, 0):]
}

// ManageWith builds, vets and tests examples/manager with a release of controller-runtime, and with the k8s.io modules
// that this release requires. The oldest toolchain builds and vets, the installed one tests, on a real API server.
func ManageWith(ctx context.Context, root string, e Embedder) Build {
	skipped := Result{Err: errSkipped}
	m := Build{Library: Library{Version: e.Kubernetes}, Build: skipped, Vet: skipped, Test: skipped}
	tmp, err := os.MkdirTemp("", "belay-manager-")
	if err != nil {
		m.Build.Err = fmt.Errorf("making a directory: %w", err)
		return m
	}
	defer os.RemoveAll(tmp)
	dir, modfile := filepath.Join(root, managerDir), filepath.Join(tmp, "go.mod")
	toolchain, err := requireRuntime(ctx, dir, modfile, e)
	if err != nil {
		m.Build.Err = err
		return m
	}
	m.Go = strings.TrimPrefix(toolchain, "go")
	run := func(env []string, args ...string) Result {
		start := time.Now()
		_, err := goCommand(ctx, dir, env, args...)
		return Result{time.Since(start), err}
	}
	oldest := []string{"GOTOOLCHAIN=" + toolchain}
	if m.Build = run(oldest, "build", "-modfile="+modfile, "-o", os.DevNull, "./..."); m.Build.Err != nil {
		return m
	}
	m.Vet = run(oldest, "vet", "-modfile="+modfile, "./...")
	m.Test = run(nil, "test", "-modfile="+modfile, "-vet=off", "-count=1", "-timeout=30m", "./...")
	return m
}

// requireRuntime writes a go.mod for the module in dir that requires a release of controller-runtime, and for all else
// the lowest release that goes with it. It returns the oldest toolchain that may build that.
func requireRuntime(ctx context.Context, dir, modfile string, e Embedder) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("reading the module of the manager: %w", err)
	}
	if err := os.WriteFile(modfile, []byte(lowestModule(string(text), e)), 0o644); err != nil {
		return "", fmt.Errorf("writing the module of the manager: %w", err)
	}
	if _, err := goCommand(ctx, dir, nil, "mod", "tidy", "-modfile="+modfile); err != nil {
		return "", err
	}
	for _, module := range kubernetesModules() {
		version, err := Required(modfile, module)
		if err != nil {
			return "", err
		}
		if version != e.Kubernetes {
			return "", fmt.Errorf("with controller-runtime %s it requires %s %s, want %s",
				e.Runtime, module, version, e.Kubernetes)
		}
	}
	return toolchainFor(ctx, modfile)
}

// lowestModule keeps of a go.mod its name, its replacements and what it requires of belay, and requires a release of
// controller-runtime besides.
func lowestModule(text string, e Embedder) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "module ") {
			b.WriteString(line)
		}
	}
	fmt.Fprintf(&b, "\ngo %s\n\nrequire %s %s\n", EmbedderGo, runtimeModule, e.Runtime)
	for _, m := range requirement.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(m[1], Module) {
			fmt.Fprintf(&b, "require %s %s\n", m[1], m[2])
		}
	}
	if at := strings.Index(text, "\nreplace "); at >= 0 {
		b.WriteString(text[at:])
	}
	return b.String()
}
