// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
}

// errFailed says that a test failed or was skipped without leave; the report has told which.
var errFailed = errors.New("the tests did not pass")

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("gotest", flag.ContinueOnError)
	allow := flags.String("allow", "", "file with the skips that are allowed")
	race := flags.String("race", "auto", "race detector: auto, on or off")
	more := flags.String("args", "", "further arguments of go test, separated by blanks")
	first := flags.String("first", "", "packages to begin with, where a module has them, separated by blanks")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the arguments: %w", err)
	}
	rules, err := readRules(*allow, os.Geteuid() == 0)
	if err != nil {
		return err
	}
	dirs := flags.Args()
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	goArgs := append([]string{"test", "-json"}, strings.Fields(*more)...)
	raceArgs := raceFlags(ctx, *race, out)
	r := newReport(out, rules)
	for _, dir := range dirs {
		if err := runModule(ctx, dir, slices.Concat(goArgs, raceArgs, packages(dir, strings.Fields(*first))), r); err != nil {
			return err
		}
		if err := runShared(ctx, dir, goArgs, r); err != nil {
			return err
		}
	}
	if !r.finish() {
		return errFailed
	}
	return nil
}

// runShared runs once more, without the race detector, what has left out something under it, to do all of it. What vet says of these
// packages was said the first time.
func runShared(ctx context.Context, dir string, goArgs []string, r *report) error {
	pkgs, tests := r.takeShared()
	if len(pkgs) == 0 {
		return nil
	}
	fmt.Fprintf(r.out, "without the race detector, what does a share of its work under it: %d tests of %d packages\n", len(tests), len(pkgs))
	only := "-run=^(" + strings.Join(tests, "|") + ")$"
	if err := runModule(ctx, dir, slices.Concat(goArgs, []string{"-vet=off", only}, pkgs), r); err != nil {
		return err
	}
	if pkgs, tests := r.takeShared(); len(pkgs) > 0 {
		r.fail(fmt.Sprintf("%q of %q leave out something without the race detector", tests, pkgs))
	}
	return nil
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

// runModule runs go test in one module. A test that fails is in the report; an error means that the run itself went wrong.
func runModule(ctx context.Context, dir string, goArgs []string, r *report) error {
	cmd := exec.CommandContext(ctx, "go", goArgs...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	events, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("running go test in %q: %w", dir, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("running go test in %q: %w", dir, err)
	}
	before := r.failed
	clear(r.failing) // of an earlier run of the same packages
	readErr := r.read(events)
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case readErr != nil:
		return readErr
	case errors.As(err, &exit) && r.failed == before:
		r.fail(fmt.Sprintf("go test in %q ended with code %d, but no test failed", dir, exit.ExitCode()))
	case err != nil && exit == nil:
		return fmt.Errorf("running go test in %q: %w", dir, err)
	}
	return nil
}

// raceFlags gives -race where it is asked for and can work, and says why where it cannot.
func raceFlags(ctx context.Context, mode string, out io.Writer) []string {
	if mode == "off" {
		return nil
	}
	if mode == "auto" {
		if missing := noCompiler(ctx); missing != "" {
			fmt.Fprintln(out, "running without the race detector:", missing)
			return nil
		}
	}
	return []string{"-race"}
}

// noCompiler says what keeps cgo, and with it the race detector, from working, or "".
func noCompiler(ctx context.Context) string {
	env, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED", "CC").Output()
	if err != nil {
		return "go env did not run: " + err.Error()
	}
	enabled, cc, _ := strings.Cut(string(bytes.TrimSpace(env)), "\n")
	compiler, _, _ := strings.Cut(cc, " ")
	if _, err := exec.LookPath(compiler); err != nil {
		return fmt.Sprintf("it needs the C compiler %q, which is not installed", compiler)
	}
	if enabled != "1" {
		return "it needs cgo, which CGO_ENABLED turns off"
	}
	return ""
}
