// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belayproject/belay/internal/archtest"
	"github.com/belayproject/belay/internal/archtest/apilist"
	"github.com/belayproject/belay/internal/badinput/gen"
)

func main() {
	if err := writeTable(context.Background(), "."); err != nil {
		fmt.Fprintln(os.Stderr, "badinput:", err)
		os.Exit(1)
	}
}

func writeTable(ctx context.Context, dir string) error {
	root, err := archtest.ModuleRoot(dir)
	if err != nil {
		return err
	}
	packages, err := apilist.Load(ctx, root)
	if err != nil {
		return err
	}
	table, err := gen.Write(packages)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, gen.File), table, 0o644)
}
