// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belayproject/belay/internal/skew"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

// matrix is what one run holds.
type matrix struct {
	root     string
	out      io.Writer
	only     []string
	packages []string
	write    bool
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("matrix", flag.ContinueOnError)
	only := flags.String("only", "", "the lines, separated by blanks; all of them if it is empty")
	write := flags.Bool("write", false, "write the gains to docs/embedding/dependencies.md")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := skew.Root()
	if err != nil {
		return err
	}
	m := matrix{root: root, out: out, only: strings.Fields(*only), packages: flags.Args(), write: *write}
	if len(m.packages) == 0 {
		m.packages = []string{"./..."}
	}
	return errors.Join(m.libraries(ctx), m.embedders(ctx), m.testManagers(ctx), m.gains(ctx))
}

func (m matrix) wants(line string) bool { return len(m.only) == 0 || slices.Contains(m.only, line) }

func (m matrix) libraries(ctx context.Context) error {
	rows := [][]string{{"library", "go", "build", "vet", "test", "seconds", "verdict"}}
	var failed error
	for _, library := range skew.Libraries() {
		if !m.wants(skew.Minor(library.Version)) {
			continue
		}
		fmt.Fprintf(m.out, "building, vetting and testing with k8s.io %s\n", library.Version)
		b := skew.BuildWith(ctx, m.root, library, m.packages...)
		if err := b.Err(); err != nil {
			fmt.Fprintf(m.out, "k8s.io %s: %v\n", library.Version, err)
		}
		if b.Failed() {
			failed = errors.New("the library fails with a supported release of the k8s.io modules")
		}
		rows = append(rows, b.Row())
	}
	m.print(rows)
	return failed
}

func (m matrix) embedders(ctx context.Context) error {
	rows := [][]string{{"embedder", "k8s.io", "go", "builds with checkpoint and drain/kube"}}
	var failed error
	for _, e := range skew.Embedders() {
		if !m.wants("runtime-" + skew.Minor(e.Runtime)) {
			continue
		}
		result := skew.EmbedWith(ctx, m.root, e)
		if result.Err != nil {
			fmt.Fprintf(m.out, "controller-runtime %s: %v\n", e.Runtime, result.Err)
			failed = errors.New("the library does not build beside a supported release of controller-runtime")
		}
		rows = append(rows, result.Row())
	}
	m.print(rows)
	return failed
}

func (m matrix) testManagers(ctx context.Context) error {
	rows := [][]string{{"examples/manager", "library", "go", "build", "vet", "test", "seconds", "verdict"}}
	var failed error
	for _, e := range skew.ManagerRuntimes() {
		if !m.wants("manager") && !m.wants("manager-"+skew.Minor(e.Runtime)) {
			continue
		}
		fmt.Fprintf(m.out, "building, vetting and testing examples/manager with controller-runtime %s\n", e.Runtime)
		managed := skew.ManageWith(ctx, m.root, e)
		if err := managed.Err(); err != nil {
			fmt.Fprintf(m.out, "controller-runtime %s: %v\n", e.Runtime, err)
			failed = errors.New("examples/manager fails with a supported release of controller-runtime")
		}
		rows = append(rows, append([]string{"controller-runtime " + e.Runtime}, managed.Row()...))
	}
	m.print(rows)
	return failed
}

// gains compares each line of the table with what scratch modules gain.
func (m matrix) gains(ctx context.Context) error {
	if !m.wants("gains") {
		return nil
	}
	gains, err := skew.Linked(ctx, m.root)
	if err != nil {
		return err
	}
	for i := range gains {
		if gains[i], err = skew.Measure(ctx, m.root, gains[i]); err != nil {
			return err
		}
	}
	table := skew.GainTable(gains)
	fmt.Fprintf(m.out, "\n%s", table)
	file := filepath.Join(m.root, "docs", "embedding", "dependencies.md")
	page, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the table of gains: %w", err)
	}
	want, err := skew.ReplaceTable(string(page), table)
	switch {
	case err != nil:
		return err
	case want == string(page):
		return nil
	case m.write:
		return os.WriteFile(file, []byte(want), 0o644)
	default:
		return fmt.Errorf("%q has another table; to write it: make matrix MATRIXARGS='-only gains -write'", file)
	}
}

func (m matrix) print(rows [][]string) {
	if len(rows) > 1 {
		fmt.Fprintf(m.out, "\n%s\n", skew.Table(rows))
	}
}
