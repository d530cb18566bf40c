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
	"sync"

	"github.com/belayproject/belay/internal/skew"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

var errFailed = errors.New("a suite fails on a supported release")

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("servers", flag.ContinueOnError)
	minors := flags.String("releases", "", "minor releases, separated by blanks; all of them if it is empty")
	logs := flags.String("logs", "", "keep the output of each suite in this directory")
	atATime := flags.Int("at-a-time", 3, "how many suites run at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := skew.Root()
	if err != nil {
		return err
	}
	releases, err := skew.Servers(root)
	if err != nil {
		return err
	}
	newest := releases[len(releases)-1]
	if wanted := strings.Fields(*minors); len(wanted) > 0 {
		releases = slices.DeleteFunc(releases, func(r string) bool { return !slices.Contains(wanted, skew.Minor(r)) })
	}
	suites, err := skew.Suites(ctx, root)
	if err != nil {
		return err
	}
	suites = slices.DeleteFunc(suites, func(s skew.Suite) bool { return !isNamed(s.Package, flags.Args()) })
	if len(releases) == 0 || len(suites) == 0 {
		return fmt.Errorf("%d releases and %d suites are named: want one of each at least", len(releases), len(suites))
	}
	dir, err := os.MkdirTemp("", "belay-skew-")
	if err != nil {
		return fmt.Errorf("making a directory for the suites: %w", err)
	}
	defer os.RemoveAll(dir)
	m := matrix{
		out: out, logs: *logs, atATime: max(1, *atATime), dir: dir, newest: newest,
		programs: map[string]string{}, cells: map[string]string{},
	}
	for _, release := range releases {
		if err := m.runRelease(ctx, root, release, suites); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\n%s", table(suites, releases, m.cells))
	return m.failed
}

// A matrix is what came of the suites so far.
type matrix struct {
	out     io.Writer
	logs    string
	atATime int
	dir     string // of the compiled suites
	newest  string // release

	mu       sync.Mutex
	programs map[string]string // by package
	cells    map[string]string // by package and release
	failed   error             // errFailed once a suite has failed
}

// runRelease runs the suites on the servers of one release, several at a time: they wait more than they compute.
func (m *matrix) runRelease(ctx context.Context, root, release string, suites []skew.Suite) error {
	fmt.Fprintf(m.out, "providing the servers of Kubernetes %s\n", release)
	if err := skew.BuildServers(ctx, root, release); err != nil {
		return err
	}
	queue := make(chan skew.Suite, len(suites))
	for _, suite := range suites {
		queue <- suite
	}
	close(queue)
	errs := make(chan error, len(suites))
	var workers sync.WaitGroup
	for range m.atATime {
		workers.Go(func() {
			for suite := range queue {
				errs <- m.runSuite(ctx, suite, release)
			}
		})
	}
	workers.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

func (m *matrix) runSuite(ctx context.Context, suite skew.Suite, release string) error {
	program, err := m.compileOnce(ctx, suite)
	if err != nil {
		return m.noteRun(skew.Run{Suite: suite, Release: release, Result: skew.Result{Err: err}})
	}
	return m.noteRun(skew.RunSuite(ctx, suite, program, release, release == m.newest))
}

// compileOnce returns the program of a suite, which an earlier release may have had compiled.
func (m *matrix) compileOnce(ctx context.Context, suite skew.Suite) (string, error) {
	m.mu.Lock()
	program := m.programs[suite.Package]
	m.mu.Unlock()
	if program != "" {
		return program, nil
	}
	program, err := skew.CompileSuite(ctx, suite, m.dir)
	if err == nil {
		m.mu.Lock()
		m.programs[suite.Package] = program
		m.mu.Unlock()
	}
	return program, err
}

// noteRun prints and keeps what came of a suite.
func (m *matrix) noteRun(r skew.Run) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	fmt.Fprintf(m.out, "%s on %s: %s\n", r.Suite.Package, r.Release, r.Cell())
	if r.Failed() {
		fmt.Fprintf(m.out, "%v\n", r.Result.Err)
		m.failed = errFailed
	}
	m.cells[r.Suite.Package+" "+r.Release] = r.Cell()
	return keepOutput(m.logs, r)
}

// isNamed reports whether one of the names is the package, or its end; no name names all.
func isNamed(pkg string, names []string) bool {
	return len(names) == 0 || slices.ContainsFunc(names, func(name string) bool {
		return pkg == name || strings.HasSuffix(pkg, "/"+strings.TrimPrefix(name, "./"))
	})
}

func keepOutput(dir string, r skew.Run) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keeping the output: %w", err)
	}
	name := strings.ReplaceAll(strings.TrimPrefix(r.Suite.Package, skew.Module+"/"), "/", "_") + "-" + r.Release + ".log"
	return os.WriteFile(filepath.Join(dir, name), []byte(r.Output), 0o644)
}

func table(suites []skew.Suite, releases []string, cells map[string]string) string {
	rows := [][]string{append([]string{"package"}, releases...)}
	for _, suite := range suites {
		row := []string{strings.TrimPrefix(suite.Package, skew.Module+"/")}
		for _, release := range releases {
			row = append(row, cells[suite.Package+" "+release])
		}
		rows = append(rows, row)
	}
	return skew.Table(rows)
}
