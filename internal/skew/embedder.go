// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// scratch is a module outside of the work tree that imports packages, as an embedder's does.
type scratch struct {
	dir string
	env []string
}

// newScratch makes a module at a Go release that imports the packages and requires the modules, of which belay is the
// work tree.
func newScratch(root, goVersion string, requires map[string]string, packages ...string) (scratch, error) {
	dir, err := os.MkdirTemp("", "belay-embedder-")
	if err != nil {
		return scratch{}, fmt.Errorf("making a scratch module: %w", err)
	}
	var mod, main strings.Builder
	fmt.Fprintf(&mod, "module example.test/embedder\n\ngo %s\n\n", goVersion)
	for module, version := range requires {
		fmt.Fprintf(&mod, "require %s %s\n", module, version)
	}
	for _, own := range ownModules() {
		fmt.Fprintf(&mod, "replace %s => %s\n", own, filepath.Join(root, strings.TrimPrefix(own, Module)))
	}
	main.WriteString("package main\n\nimport (\n")
	for _, p := range packages {
		fmt.Fprintf(&main, "\t_ %q\n", p)
	}
	main.WriteString(")\n\nfunc main() {}\n")
	return scratch{dir: dir}, errors.Join(
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod.String()), 0o644),
		os.WriteFile(filepath.Join(dir, "main.go"), []byte(main.String()), 0o644))
}

func (s scratch) remove() { os.RemoveAll(s.dir) }

func (s scratch) modfile() string { return filepath.Join(s.dir, "go.mod") }

// tidy runs go mod tidy and returns an error where it raises the Go release or a k8s.io module above what the embedder
// had.
func (s scratch) tidy(ctx context.Context, goVersion, kubernetes string) error {
	if _, err := goCommand(ctx, s.dir, s.env, "mod", "tidy"); err != nil {
		return err
	}
	got, err := GoLine(s.modfile())
	if err != nil {
		return err
	}
	if got != goVersion {
		return fmt.Errorf("tidy raises the Go release from %s to %s", goVersion, got)
	}
	for _, module := range kubernetesModules() {
		version, err := Required(s.modfile(), module)
		if err == nil && kubernetes != "" && version != kubernetes {
			return fmt.Errorf("tidy raises %s from %s to %s", module, kubernetes, version)
		}
	}
	return nil
}

// counts returns how many modules the go.mod requires, belay's own left out, and how many lines its go.sum has.
func (s scratch) counts() (modules, sums int, err error) {
	mod, err := os.ReadFile(s.modfile())
	if err != nil {
		return 0, 0, fmt.Errorf("counting requirements: %w", err)
	}
	for _, m := range requirement.FindAllStringSubmatch(string(mod), -1) {
		if !strings.HasPrefix(m[1], Module) {
			modules++
		}
	}
	sum, err := os.ReadFile(filepath.Join(s.dir, "go.sum"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, 0, fmt.Errorf("counting sums: %w", err)
	}
	return modules, strings.Count(string(sum), "\n"), nil
}

// runtimeModule is the path of controller-runtime.
const runtimeModule = "sigs.k8s.io/controller-runtime"

// An Embedding is one line of the table of embedders.
type Embedding struct {
	Embedder Embedder
	Go       string
	Err      error
}

// EmbedWith builds a program that has a release of controller-runtime beside checkpoint and drain/kube, and returns an
// error where belay changes what the program had: its Go release or its k8s.io modules.
func EmbedWith(ctx context.Context, root string, e Embedder) Embedding {
	result := Embedding{Embedder: e}
	result.Go, result.Err = embed(ctx, root, e)
	return result
}

func embed(ctx context.Context, root string, e Embedder) (string, error) {
	before, err := newScratch(root, "1.25.0", map[string]string{runtimeModule: e.Runtime}, runtimeModule)
	if err != nil {
		return "", err
	}
	defer before.remove()
	if _, err := goCommand(ctx, before.dir, nil, "mod", "tidy"); err != nil {
		return "", err
	}
	goVersion, err := GoLine(before.modfile())
	if err != nil {
		return "", err
	}
	kubernetes, err := Required(before.modfile(), "k8s.io/client-go")
	if err != nil {
		return goVersion, err
	}
	if kubernetes != e.Kubernetes {
		return goVersion, fmt.Errorf("controller-runtime %s requires k8s.io %s, want %s", e.Runtime, kubernetes, e.Kubernetes)
	}
	requires := map[string]string{runtimeModule: e.Runtime, Module: "v0.0.0"}
	with, err := newScratch(root, goVersion, requires, runtimeModule, Module+"/checkpoint", Module+"/drain/kube")
	if err != nil {
		return goVersion, err
	}
	defer with.remove()
	if err := with.tidy(ctx, goVersion, kubernetes); err != nil {
		return goVersion, err
	}
	_, err = goCommand(ctx, with.dir, nil, "build", "./...")
	return goVersion, err
}

// Row is the line in words.
func (e Embedding) Row() []string {
	return []string{"controller-runtime " + e.Embedder.Runtime, e.Embedder.Kubernetes, e.Go, verdict(e.Err, false)}
}
