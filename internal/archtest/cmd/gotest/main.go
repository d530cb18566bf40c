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
	"strings"
	"syscall"

	"github.com/belayproject/belay/internal/archtest"
	"github.com/belayproject/belay/internal/tier"
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
	race := flags.String("race", "auto", "race detector: auto (in packages that start no servers), on or off")
	more := flags.String("args", "", "further arguments of go test, separated by blanks")
	first := flags.String("first", "", "packages to begin with, by their paths inside the repository, separated by blanks")
	only := flags.String("only", "", "packages to test, by their paths inside the repository, separated by blanks; all if empty")
	beside := flags.Int("beside", 1, "packages at a time of the modules after the first, which runs at the same time")
	system := flags.Bool("system", false, "run the tests of the system tier, and no other")
	proofs := flags.Bool("proofs", false, "run in whole the tests that are left to make proofs, and no other")
	list := flags.Bool("list", false, "list the tests of the system tier, or with -proofs of the proofs, and run nothing")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the arguments: %w", err)
	}
	rules, err := readRules(*allow)
	if err != nil {
		return err
	}
	dirs := flags.Args()
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	g := &gate{
		report: newReport(out, rules), first: strings.Fields(*first), only: strings.Fields(*only), beside: *beside,
		race: detectorFor(ctx, *race, out), args: append([]string{"test", "-json"}, strings.Fields(*more)...),
	}
	name, find := tier.On, archtest.SystemTests
	if *proofs {
		name, find = tier.Proofs, archtest.ProofTests
	}
	switch {
	case *list:
		_, err := markedTests(dirs[0], find, out)
		return err
	case *system || *proofs:
		var tests []archtest.MarkedTest
		if tests, err = markedTests(dirs[0], find, io.Discard); err == nil {
			err = g.runMarked(ctx, name, dirs, tests)
		}
	default:
		err = g.run(ctx, dirs)
	}
	if err != nil {
		return err
	}
	if !g.report.finish() {
		return errFailed
	}
	return nil
}

// markedTests finds the tests of a tier in the repository and prints them.
func markedTests(
	root string, find func(*archtest.Tree) []archtest.MarkedTest, out io.Writer,
) ([]archtest.MarkedTest, error) {
	tree, err := archtest.ReadTree(os.DirFS(root))
	if err != nil {
		return nil, err
	}
	tests := find(tree)
	for _, t := range tests {
		fmt.Fprintf(out, "%s.%s\n", t.Dir, t.Name)
	}
	return tests, nil
}

// detectorFor is what -race asks for: where it can't work, nothing, and why is said.
func detectorFor(ctx context.Context, mode string, out io.Writer) detector {
	switch mode {
	case "off":
		return detectNone
	case "on":
		return detectAll
	}
	if missing := noCompiler(ctx); missing != "" {
		fmt.Fprintln(out, "running without the race detector:", missing)
		return detectNone
	}
	return detectPure
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
