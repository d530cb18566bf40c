// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/testenv/binaries"
)

// errSkipped stands for a step that another one's failure leaves out.
var errSkipped = errors.New("not run")

// A Result is what came of one step.
type Result struct {
	Took time.Duration
	Err  error // nil where it passed, and where no such step is asked for
}

// A Build is one line of the table of libraries.
type Build struct {
	Library          Library
	Go               string // the toolchain
	Build, Vet, Test Result
}

// BuildWith builds, vets and unit-tests the packages of the library module at root with one release of the k8s.io
// modules. The floor is built as it is committed, and has to be tidy. Packages that reach no k8s.io module are tested
// nowhere but in make test: they are the same with each.
func BuildWith(ctx context.Context, root string, library Library, packages ...string) Build {
	skipped := Result{Err: errSkipped}
	b := Build{Library: library, Build: skipped, Vet: skipped, Test: skipped}
	dir, err := os.MkdirTemp("", "belay-matrix-")
	if err != nil {
		b.Build.Err = fmt.Errorf("making a directory: %w", err)
		return b
	}
	defer os.RemoveAll(dir)
	modfile := filepath.Join(dir, "go.mod")
	if b.Build.Err = requireLibrary(ctx, root, modfile, library.Version); b.Build.Err != nil {
		return b
	}
	toolchain, err := toolchainFor(ctx, modfile)
	if err != nil {
		b.Build.Err = err
		return b
	}
	env := []string{"GOTOOLCHAIN=" + toolchain, binaries.ServersVariable + "=none"}
	b.Go = strings.TrimPrefix(toolchain, "go")
	run := func(args ...string) Result {
		start := time.Now()
		_, err := goCommand(ctx, root, env, args...)
		return Result{time.Since(start), err}
	}
	if b.Build = run(append([]string{"build", "-modfile=" + modfile}, packages...)...); b.Build.Err != nil {
		return b
	}
	b.Vet = run(append([]string{"vet", "-modfile=" + modfile}, packages...)...)
	tested, err := testedPackages(ctx, root, env, modfile, packages)
	if err != nil || len(tested) == 0 {
		b.Test = Result{Err: err}
		return b
	}
	b.Test = run(append([]string{"test", "-modfile=" + modfile, "-vet=off", "-timeout=30m"}, tested...)...)
	return b
}

// requireLibrary writes a copy of the go.mod and go.sum at root that requires version of the k8s.io modules.
func requireLibrary(ctx context.Context, root, modfile, version string) error {
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return fmt.Errorf("copying the module: %w", err)
		}
		if err := os.WriteFile(filepath.Join(filepath.Dir(modfile), name), text, 0o644); err != nil {
			return fmt.Errorf("copying the module: %w", err)
		}
	}
	floor, err := Required(modfile, "k8s.io/client-go")
	if err != nil {
		return err
	}
	if floor == version {
		_, err := goCommand(ctx, root, nil, "mod", "tidy", "-diff")
		return err
	}
	var modules []string
	for _, name := range kubernetesModules() {
		modules = append(modules, name+"@"+version)
	}
	if _, err := goCommand(ctx, root, nil, append([]string{"get", "-modfile=" + modfile}, modules...)...); err != nil {
		return err
	}
	_, err = goCommand(ctx, root, nil, "mod", "tidy", "-modfile="+modfile)
	return err
}

// kubernetesModules are the modules of Kubernetes that the library requires.
func kubernetesModules() []string {
	return []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go"}
}

// toolchainFor returns the oldest toolchain that may build the module of modfile: the very release that it names, or
// the installed one where that is of the same minor.
func toolchainFor(ctx context.Context, modfile string) (string, error) {
	want, err := GoLine(modfile)
	if err != nil {
		return "", err
	}
	installed, err := goCommand(ctx, filepath.Dir(modfile), []string{"GOTOOLCHAIN=local"}, "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	installed = strings.TrimSpace(installed)
	if Minor(strings.TrimPrefix(installed, "go")) == Minor(want) {
		return installed, nil
	}
	return "go" + want, nil
}

// testedPackages are those of packages whose tests reach a module of Kubernetes, and no command that tests the work
// tree itself.
func testedPackages(
	ctx context.Context, root string, env []string, modfile string, packages []string,
) ([]string, error) {
	const format = `{{if .ForTest}}{{else if eq .Name "main"}}{{.ImportPath}} {{join .Deps " "}}{{end}}`
	args := []string{"list", "-modfile=" + modfile, "-test", "-f", format}
	out, err := goCommand(ctx, root, env, append(args, packages...)...)
	if err != nil {
		return nil, err
	}
	var tested []string
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		name, isTest := strings.CutSuffix(fields[0], ".test")
		if !isTest || strings.HasPrefix(name, Module+"/internal/") {
			continue
		}
		if slices.ContainsFunc(fields[1:], func(dep string) bool { return strings.HasPrefix(dep, "k8s.io/") }) {
			tested = append(tested, name)
		}
	}
	return tested, nil
}

// Failed reports whether the line fails the whole.
func (b Build) Failed() bool { return b.Err() != nil && !b.Library.MayFail }

// Err returns all that went wrong.
func (b Build) Err() error {
	var errs []error
	for _, r := range []Result{b.Build, b.Vet, b.Test} {
		if !errors.Is(r.Err, errSkipped) {
			errs = append(errs, r.Err)
		}
	}
	return errors.Join(errs...)
}

// Row is the line in words.
func (b Build) Row() []string {
	took := b.Build.Took + b.Vet.Took + b.Test.Took
	return []string{
		"k8s.io " + b.Library.Version, b.Go, word(b.Build.Err), word(b.Vet.Err), word(b.Test.Err),
		fmt.Sprintf("%.0f", took.Seconds()), verdict(b.Err(), b.Library.MayFail),
	}
}

func word(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, errSkipped):
		return "-"
	default:
		return "FAIL"
	}
}

func verdict(err error, mayFail bool) string {
	switch {
	case err == nil:
		return "ok"
	case mayFail:
		return "fails, as it may"
	default:
		return "FAIL"
	}
}
