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
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

var errFailed = errors.New("a suite fails on a supported release")

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("servers", flag.ContinueOnError)
	minors := flags.String("releases", "", "minor releases, separated by blanks; all of them if it is empty")
	logs := flags.String("logs", "", "keep the output of each suite in this directory")
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
	cells, failed := map[string]string{}, error(nil)
	for _, release := range releases {
		fmt.Fprintf(out, "providing the servers of Kubernetes %s\n", release)
		if err := skew.BuildServers(ctx, root, release); err != nil {
			return err
		}
		for _, suite := range suites {
			r := skew.RunSuite(ctx, suite, release, release == newest)
			fmt.Fprintf(out, "%s on %s: %s\n", suite.Package, release, r.Cell())
			if r.Failed() {
				fmt.Fprintf(out, "%v\n", r.Result.Err)
				failed = errFailed
			}
			if err := keep(*logs, r); err != nil {
				return err
			}
			cells[suite.Package+" "+release] = r.Cell()
		}
	}
	fmt.Fprintf(out, "\n%s", table(suites, releases, cells))
	return failed
}

// isNamed reports whether one of the names is the package, or its end; no name names all.
func isNamed(pkg string, names []string) bool {
	return len(names) == 0 || slices.ContainsFunc(names, func(name string) bool {
		return pkg == name || strings.HasSuffix(pkg, "/"+strings.TrimPrefix(name, "./"))
	})
}

func keep(dir string, r skew.Run) error {
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
