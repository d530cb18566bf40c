// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/belayproject/belay/internal/archtest"
)

// A detector says which tests run with the race detector.
type detector int

const (
	detectNone detector = iota
	detectPure          // those of packages that start no control plane
	detectAll
)

// raceFlags are the arguments of go test for packages of both kinds.
func (d detector) raceFlags() []string {
	if d == detectAll {
		return []string{"-race"}
	}
	return nil
}

// serversPackage starts control planes.
const serversPackage = archtest.Module + "/internal/testenv"

// sortByServers lists the packages with tests in the module in dir, in their order: those whose tests can start a
// control plane, and the others.
func sortByServers(ctx context.Context, dir string, patterns []string) (servers, pure []string, err error) {
	const format = `{{if eq .Name "main"}}{{.ImportPath}}{{range .Deps}} {{.}}{{end}}{{end}}`
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"list", "-e", "-test", "-f", format}, patterns)...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "GOWORK=off"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("listing the packages in %q: %w", dir, err)
	}
	for line := range bytes.Lines(out) {
		fields := strings.Fields(string(line))
		if len(fields) == 0 {
			continue
		}
		pkg, ok := strings.CutSuffix(fields[0], ".test")
		switch {
		case !ok: // a command
		case slices.Contains(fields[1:], serversPackage):
			servers = append(servers, pkg)
		default:
			pure = append(pure, pkg)
		}
	}
	return servers, pure, nil
}
