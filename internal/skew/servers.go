// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/testenv/binaries"
)

// A Suite is a package whose tests start an API server.
type Suite struct {
	Package string // import path
	Dir     string // of its sources
	// Kubelet says that the tests start a kubelet, too. It is of the newest release, and no kubelet may be newer than its
	// API server.
	Kubelet bool
}

// Suites returns the suites of the library module and of the modules with its programs, sorted within each module.
func Suites(ctx context.Context, root string) ([]Suite, error) {
	var suites []Suite
	for _, dir := range []string{"", "examples", "examples/internal/manifestproof", "examples/manager"} {
		const format = `{{if eq .Name "main"}}{{.ImportPath}} {{.Dir}} {{join .Deps " "}}{{end}}`
		out, err := goCommand(ctx, filepath.Join(root, dir), nil, "list", "-test", "-f", format, "./...")
		if err != nil {
			return nil, err
		}
		suites = append(suites, parseSuites(out)...)
	}
	return suites, nil
}

// parseSuites reads one line a program: its import path, its directory and all that it links.
func parseSuites(list string) []Suite {
	const servers, kubelets = Module + "/internal/testenv", Module + "/internal/testenv/nodetier"
	var suites []Suite
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		pkg, isTest := strings.CutSuffix(fields[0], ".test")
		dir, deps := fields[1], fields[2:]
		if !isTest || strings.HasPrefix(pkg, servers+"/cmd/") || !slices.Contains(deps, servers) {
			continue
		}
		suites = append(suites, Suite{pkg, dir, slices.Contains(deps, kubelets)})
	}
	slices.SortFunc(suites, func(a, b Suite) int { return strings.Compare(a.Package, b.Package) })
	return suites
}

// A Run is what came of one suite on one release of the servers.
type Run struct {
	Suite   Suite
	Release string
	Result  Result
	Output  string // what go test printed
}

// CompileSuite compiles the tests of a suite into dir, and returns the path of the program.
func CompileSuite(ctx context.Context, s Suite, dir string) (string, error) {
	path := filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(s.Package, Module+"/"), "/", "_")+".test")
	_, err := goCommand(ctx, s.Dir, nil, "test", "-vet=off", "-c", "-o", path, s.Package)
	return path, err
}

// RunSuite runs a compiled suite on the servers of a release such as 1.35.4. One that starts kubelets runs on the
// newest release alone.
func RunSuite(ctx context.Context, s Suite, program, release string, newest bool) Run {
	run := Run{Suite: s, Release: release}
	if s.Kubelet && !newest {
		run.Result.Err = errSkipped
		return run
	}
	start := time.Now()
	env := []string{binaries.ReleaseVariable + "=" + Minor(release)}
	run.Output, run.Result.Err = runCommand(ctx, s.Dir, env, program, "-test.timeout=30m", "-test.parallel=8")
	run.Result.Took = time.Since(start)
	return run
}

// BuildServers builds the servers of a release.
func BuildServers(ctx context.Context, root, release string) error {
	args := []string{"run", "./internal/testenv/cmd/binaries"}
	for _, name := range []binaries.Name{
		binaries.Reaper, binaries.Etcd, binaries.APIServer, binaries.ControllerManager, binaries.Scheduler, binaries.Kwok,
	} {
		args = append(args, string(name))
	}
	_, err := goCommand(ctx, root, []string{binaries.ReleaseVariable + "=" + Minor(release)}, args...)
	return err
}

// Failed reports whether the suite ran and failed.
func (r Run) Failed() bool { return word(r.Result.Err) == "FAIL" }

// Cell is the run in words.
func (r Run) Cell() string {
	w := word(r.Result.Err)
	if w == "-" {
		return w
	}
	return fmt.Sprintf("%s %.0f s", w, r.Result.Took.Seconds())
}
