// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package apilist

import (
	"bytes"
	"context"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belayproject/belay/internal/archtest"
)

// modules are the directories of the modules that hold public packages.
var modules = []string{".", "configsync/restart/systemd"}

// Load gives the public packages of the repository at root, by their path inside the root module. It reads the compiler's
// export data, which the go command builds where it is not cached.
func Load(ctx context.Context, root string) (map[string]*types.Package, error) {
	found := map[string]*types.Package{}
	for _, dir := range modules {
		exports, err := listExports(ctx, filepath.Join(root, dir))
		if err != nil {
			return nil, err
		}
		imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
			return os.Open(exports[path])
		})
		for _, path := range slices.Sorted(maps.Keys(exports)) {
			rel, ok := strings.CutPrefix(path, archtest.Module+"/")
			if _, done := found[rel]; done || !ok || !archtest.IsPublic(rel) {
				continue
			}
			if found[rel], err = imp.Import(path); err != nil {
				return nil, fmt.Errorf("reading the export data of %q: %w", path, err)
			}
		}
	}
	return found, nil
}

// listExports gives the file of export data of every package that the module in dir holds or imports.
func listExports(ctx context.Context, dir string) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-export", "-f", "{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages in %q: %w: %s", dir, err, bytes.TrimSpace(stderr.Bytes()))
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			exports[path] = file
		}
	}
	return exports, nil
}
