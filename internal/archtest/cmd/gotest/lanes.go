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
)

// A gate runs the tests of modules in two lanes. One has the first module, as many packages at a time as the arguments say. The other, a
// package at a time, has the other modules, and what the first lane has left out under the race detector as soon as its package is through;
// when the first lane is empty, it has the machine to itself, and the arguments count. So there is no end of a module at which processors
// wait for the last package.
type gate struct {
	report *report
	first  []string // packages to begin with, where a module has them
	args   []string // of the go command
	race   []string // further ones for the race detector
}

func (g *gate) run(ctx context.Context, dirs []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs [2]error
	var lanes sync.WaitGroup
	ended := make(chan struct{})
	lanes.Go(func() {
		defer close(ended)
		if errs[0] = g.module(ctx, dirs[0], nil); errs[0] != nil {
			cancel()
		}
	})
	lanes.Go(func() {
		if errs[1] = g.rest(ctx, dirs[1:], ended); errs[1] != nil {
			cancel()
		}
	})
	lanes.Wait()
	return errors.Join(errs[:]...)
}

// one has the go command do one thing at a time.
func one() []string { return []string{"-p=1"} }

// rest is the second lane. It ends after the first one.
func (g *gate) rest(ctx context.Context, dirs []string, ended <-chan struct{}) error {
	for _, dir := range dirs {
		if err := g.module(ctx, dir, one()); err != nil {
			return err
		}
	}
	for over := false; ; {
		s, found := g.report.takeShare(g.first, over)
		switch {
		case found && over:
			if err := g.again(ctx, s, nil); err != nil {
				return err
			}
		case found:
			if err := g.again(ctx, s, one()); err != nil {
				return err
			}
		case over:
			return nil
		}
		over = g.waitForShare(ended, found)
	}
}

// waitForShare waits until there may be something to make good, and reports whether the first lane has ended. It does not wait where there may
// be more.
func (g *gate) waitForShare(ended <-chan struct{}, more bool) (over bool) {
	if !more {
		select {
		case <-g.report.more:
		case <-ended:
		}
	}
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// module runs all tests of a module, where there is one with the race detector.
func (g *gate) module(ctx context.Context, dir string, more []string) error {
	return g.test(ctx, g.report.stream(dir, false), slices.Concat(g.args, more, g.race, packages(dir, g.first)))
}

// again runs, without the race detector, what has left out something under it, to do all of it. What vet says of these packages was said the
// first time.
func (g *gate) again(ctx context.Context, s share, more []string) error {
	g.report.say(fmt.Sprintf("without the race detector, what does a share of its work under it: %d tests of %d packages\n", len(s.tests), len(s.pkgs)))
	only := []string{"-vet=off", "-run=^(" + strings.Join(s.tests, "|") + ")$"}
	return g.test(ctx, g.report.stream(s.dir, true), slices.Concat(g.args, more, only, s.pkgs))
}

// packages lists all packages of the module in dir. Those of first come first where they are there: go test starts them in this order.
func packages(dir string, first []string) []string {
	var list []string
	for _, pkg := range first {
		if _, err := os.Stat(filepath.Join(dir, pkg)); err == nil {
			list = append(list, "./"+pkg)
		}
	}
	return append(list, "./...")
}

// test runs go test in one module. A test that fails is in the report; an error means that the run itself went wrong.
func (g *gate) test(ctx context.Context, s *stream, args []string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.dir
	cmd.Env = environ(os.Environ())
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	events, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("running go test in %q: %w", s.dir, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("running go test in %q: %w", s.dir, err)
	}
	readErr := s.read(events)
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case readErr != nil:
		return readErr
	case errors.As(err, &exit) && s.failed == 0:
		s.report.fail(fmt.Sprintf("go test in %q ended with code %d, but no test failed", s.dir, exit.ExitCode()))
	case err != nil && exit == nil:
		return fmt.Errorf("running go test in %q: %w", s.dir, err)
	}
	return nil
}

// environ adds what saves time and proves no less. Memory is cheaper than processors: the collector of the go command, of the tests, and of
// the servers that they start, waits until a heap is five times as large as what is live. A process with the race detector otherwise sleeps
// for a second before it ends. What the environment says itself comes first.
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
	return append(slices.Clone(env), gc, "GORACE=atexit_sleep_ms=0 "+race)
}
