// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/belayproject/belay/internal/archtest"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "ratchets:", err)
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
	name := filepath.Join(root, archtest.RatchetsFile)
	figures := archtest.Measure(tree)
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("reading the table: %w", err)
	default:
		limits, err := archtest.ParseFigures(text)
		if err != nil {
			return err
		}
		figures = archtest.LowerFigures(figures, limits)
	}
	lowered := archtest.FormatFigures(figures)
	if bytes.Equal(lowered, text) {
		return nil
	}
	if err := os.WriteFile(name, lowered, 0o644); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}
