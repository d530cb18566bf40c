// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/archtest"
)

// TestRunLowersTheTable runs the command in a small repository: without a table, with one that allows more, and with one that allows less.
func TestRunLowersTheTable(t *testing.T) {
	for _, c := range []struct{ name, table, want string }{
		{"no table", "", "lkg one-word=2\n"},
		{"more", "lkg one-word=3 fields=1\ngone files=1\n", "lkg one-word=2\n"},
		{"less", "lkg one-word=1\n", "lkg one-word=1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			table := filepath.Join(root, archtest.RatchetsFile)
			writeFile(t, filepath.Join(root, "go.mod"), "module "+archtest.Module+"\n")
			writeFile(t, filepath.Join(root, "lkg", "a.go"), "package lkg\n\nfunc heed() {}\n\nfunc tend() {}\n")
			if c.table != "" {
				writeFile(t, table, c.table)
			} else if err := os.MkdirAll(filepath.Dir(table), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := run(filepath.Join(root, "lkg")); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(table)
			if err != nil || !strings.HasSuffix(string(got), "\n"+c.want) || strings.Count(string(got), "=") != strings.Count(c.want, "=") {
				t.Errorf("got %q (error %v), want the table to be %q", got, err, c.want)
			}
		})
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
