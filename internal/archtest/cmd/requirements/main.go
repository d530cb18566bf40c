// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belayproject/belay/internal/archtest"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "requirements:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	root, err := archtest.ModuleRoot(dir)
	if err != nil {
		return err
	}
	tree, err := archtest.ReadTree(os.DirFS(root))
	if err != nil {
		return err
	}
	name := filepath.Join(root, archtest.RequirementsFile)
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("reading the list: %w", err)
	}
	filled, err := archtest.FillRows(text, archtest.Tests(tree))
	if err != nil || bytes.Equal(filled, text) {
		return err
	}
	if err := os.WriteFile(name, filled, 0o644); err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	return nil
}
