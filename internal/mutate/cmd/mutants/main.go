// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belayproject/belay/internal/mutate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o := mutate.Options{Out: out}
	f := flag.NewFlagSet("mutants", flag.ContinueOnError)
	f.StringVar(&o.Run, "run", "", "pattern of the tests that run, as of go test")
	f.IntVar(&o.Max, "max", 100, "how many mutants run at most; 0 is all")
	f.Uint64Var(&o.Seed, "seed", 1, "chooses the mutants where there are more than -max")
	f.IntVar(&o.Parallel, "parallel", 1, "how many mutants are tested at a time")
	f.StringVar(&o.Func, "func", "", "the one function to break, as a stack trace names it")
	f.StringVar(&o.Tests, "tests", "", "directory of the package whose tests run, if it is another")
	f.BoolVar(&o.Long, "long", false, "run long tests too: without -test.short")
	if err := f.Parse(args); err != nil {
		return err
	}
	switch f.NArg() {
	case 0:
		return runIncidents(ctx, out)
	case 1:
		o.Dir = f.Arg(0)
		_, err := mutate.Explore(ctx, o)
		return err
	}
	return fmt.Errorf("want one package at a time, have %q", f.Args())
}

// runIncidents runs the tests of every package with hand-written mutants below the working directory, in its own module.
func runIncidents(ctx context.Context, out io.Writer) error {
	dirs, err := findIncidents(".")
	if err != nil {
		return err
	}
	var failed []string
	for _, dir := range dirs {
		cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-timeout=3h", "-run=^TestIncidents$", "-v", ".")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "BELAY_MUTANTS=all")
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		_, _ = fmt.Fprintln(out, "mutants of", dir)
		if err := cmd.Run(); err != nil {
			failed = append(failed, dir)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("mutants survive in %s", strings.Join(failed, ", "))
	}
	return nil
}

// findIncidents returns the directories whose tests call mutate.Incidents.
func findIncidents(root string) (dirs []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(string(b), "mutate.Incidents(t") && !slices.Contains(dirs, filepath.Dir(path)) {
			dirs = append(dirs, filepath.Dir(path))
		}
		return nil
	})
	return dirs, err
}
