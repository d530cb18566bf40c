// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/belayproject/belay/internal/archtest"
	"github.com/belayproject/belay/internal/tier"
)

// A gate runs the tests of modules: of each package by the module that it belongs to, as a user of that module builds it.
type gate struct {
	report *report
	first  []string // packages to begin with, by their path inside the repository
	args   []string // of the go command
	only   []string // packages to run, if not all
	beside int      // packages at a time of the modules after the first
	race   detector
	env    []string // further variables for the tests
}

// run runs all tests of the modules in two lanes: one has the first module, the other the rest. So there is no end of a module at which
// processors wait for its last package.
func (g *gate) run(ctx context.Context, dirs []string) error {
	return both(ctx, func(ctx context.Context) error {
		return g.module(ctx, dirs[0], dirs[0], nil)
	}, func(ctx context.Context) error {
		for _, dir := range dirs[1:] {
			if err := g.module(ctx, dirs[0], dir, []string{fmt.Sprintf("-p=%d", g.beside)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// both runs two functions at the same time. An error of one ends the other.
func both(ctx context.Context, one, other func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs [2]error
	var lanes sync.WaitGroup
	for i, lane := range []func(context.Context) error{one, other} {
		lanes.Go(func() {
			if errs[i] = lane(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	lanes.Wait()
	return errors.Join(errs[:]...)
}

// module runs the tests of the module in dir.
func (g *gate) module(ctx context.Context, root, dir string, more []string) error {
	pkgs := append(inside(root, dir, g.first), "./...")
	if len(g.only) > 0 {
		if pkgs = inside(root, dir, g.only); len(pkgs) == 0 {
			return nil
		}
	}
	args := slices.Concat(g.args, more)
	if g.race != detectPure {
		return g.test(ctx, dir, slices.Concat(args, g.race.raceFlags(), pkgs))
	}
	servers, pure, err := sortByServers(ctx, dir, pkgs)
	if err != nil {
		return err
	}
	return both(ctx, func(ctx context.Context) error {
		return g.runPackages(ctx, dir, args, servers)
	}, func(ctx context.Context) error {
		return g.runPackages(ctx, dir, append(args[:len(args):len(args)], "-race"), pure)
	})
}

// runPackages runs the tests of packages, if there are any.
func (g *gate) runPackages(ctx context.Context, dir string, args, pkgs []string) error {
	if len(pkgs) == 0 {
		return nil
	}
	return g.test(ctx, dir, slices.Concat(args, pkgs))
}

// inside gives those of the packages that the module in dir has. go test starts packages in the order in which they are named.
func inside(root, dir string, pkgs []string) []string {
	var list []string
	for _, pkg := range pkgs {
		if rel, err := filepath.Rel(dir, filepath.Join(root, pkg)); err == nil && filepath.IsLocal(rel) && holds(dir, rel) {
			list = append(list, "./"+filepath.ToSlash(rel))
		}
	}
	return list
}

// holds reports whether the module in dir has a package at a path below it, and no other module there has it.
func holds(dir, rel string) bool {
	for at := rel; at != "."; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(dir, at, "go.mod")); err == nil {
			return false
		}
	}
	_, err := os.Stat(filepath.Join(dir, rel))
	return err == nil
}

// A job is the tests of another tier in one package.
type job struct {
	dir   string // of the module
	pkg   string // below dir
	tests []string
}

// runMarked runs the tests of another tier of the modules, and no other test, package by package, two at a time.
func (g *gate) runMarked(ctx context.Context, name string, dirs []string, tests []archtest.MarkedTest) error {
	jobs := make(chan job, len(tests))
	if len(g.only) > 0 {
		tests = slices.DeleteFunc(tests, func(t archtest.MarkedTest) bool { return !slices.Contains(g.only, t.Dir) })
	}
	for _, j := range jobsOf(dirs, tests) {
		jobs <- j
	}
	close(jobs)
	lane := func(ctx context.Context) error {
		for j := range jobs {
			only := []string{"-run=^(" + strings.Join(j.tests, "|") + ")$", "./" + j.pkg}
			if err := g.test(ctx, j.dir, slices.Concat(g.args, g.race.raceFlags(), only)); err != nil {
				return err
			}
		}
		return nil
	}
	g.env = append(g.env, tier.Variable+"="+name)
	err := both(ctx, lane, lane)
	g.report.checkRan(tests)
	return err
}

// jobsOf sorts tests by package, and finds the module of each: the innermost one. The first module is that at the root of the repository.
func jobsOf(dirs []string, tests []archtest.MarkedTest) []job {
	var jobs []job
	for i, t := range tests {
		if i > 0 && tests[i-1].Dir == t.Dir {
			last := &jobs[len(jobs)-1]
			last.tests = append(last.tests, t.Name)
			continue
		}
		j := job{dirs[0], t.Dir, []string{t.Name}}
		for _, dir := range dirs[1:] {
			rel, err := filepath.Rel(dir, filepath.Join(dirs[0], t.Dir))
			if err == nil && filepath.IsLocal(rel) && len(dir) > len(j.dir) {
				j.dir, j.pkg = dir, filepath.ToSlash(rel)
			}
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// test runs go test in one module. A test that fails is in the report; an error means that the run itself went wrong.
func (g *gate) test(ctx context.Context, dir string, args []string) error {
	s := g.report.stream()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(environ(os.Environ()), g.env...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	events, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("running go test in %q: %w", dir, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("running go test in %q: %w", dir, err)
	}
	readErr := s.read(events)
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case readErr != nil:
		return readErr
	case errors.As(err, &exit) && s.failed == 0:
		s.report.fail(fmt.Sprintf("go test in %q ended with code %d, but no test failed", dir, exit.ExitCode()))
	case err != nil && exit == nil:
		return fmt.Errorf("running go test in %q: %w", dir, err)
	}
	return nil
}

// environ adds what saves time and proves no less. Memory is cheaper than processors: the collector of the go command, of the tests, and of
// the servers that they start, waits until a heap is five times as large as what is live. A process with the race detector otherwise sleeps
// for a second before it ends. What the environment says itself comes first. Workspaces are for editors: a module is tested with its own
// requirements.
func environ(env []string) []string {
	gc, race := "GOGC=400", ""
	for _, v := range env {
		if strings.HasPrefix(v, "GOGC=") {
			gc = v
		}
		if options, ok := strings.CutPrefix(v, "GORACE="); ok {
			race = options
		}
	}
	return append(slices.Clone(env), gc, "GORACE=atexit_sleep_ms=0 "+race, "GOWORK=off")
}
