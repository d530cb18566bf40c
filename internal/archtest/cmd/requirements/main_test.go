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

// TestRunFillsTheList runs the command in a small module and reads the list back.
func TestRunFillsTheList(t *testing.T) {
	root := t.TempDir()
	list := filepath.Join(root, archtest.RequirementsFile)
	write(t, filepath.Join(root, "go.mod"), "module "+archtest.Module+"\n")
	write(t, filepath.Join(root, "lkg", "a_test.go"), "package lkg\n\n// R-CS-18\nfunc TestA() {}\n")
	write(t, list, "| R-CS-18 | meaning | not yet |\n| R-CS-19 | meaning | `lkg.TestGone` |\n")

	if err := run(filepath.Join(root, "lkg")); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if want := "| R-CS-18 | meaning | `lkg.TestA` |\n| R-CS-19 | meaning | not yet |\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRunKeepsWhatItCannotRead shows that a list with a broken row is left as it is, with an error that names the line.
func TestRunKeepsWhatItCannotRead(t *testing.T) {
	root := t.TempDir()
	list := filepath.Join(root, archtest.RequirementsFile)
	write(t, filepath.Join(root, "go.mod"), "module "+archtest.Module+"\n")
	const text = "| R-CS-18 | meaning | soon |\n"
	write(t, list, text)

	if err := run(root); err == nil || !strings.Contains(err.Error(), archtest.RequirementsFile+":1") {
		t.Errorf("got %v, want an error that names line 1", err)
	}
	if got, err := os.ReadFile(list); err != nil || string(got) != text {
		t.Errorf("got %q (error %v), want the list as it was", got, err)
	}
}

// TestRunOutsideTheModule shows that the command touches nothing where there is no module.
func TestRunOutsideTheModule(t *testing.T) {
	if err := run(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no go.mod") {
		t.Errorf("got %v, want an error that says there is no go.mod", err)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
