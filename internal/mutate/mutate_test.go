// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMutantMustStandOnceInItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.go")
	if err := os.WriteFile(file, []byte("package a\n\nvar x, y = 1, 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for old, want := range map[string]string{"1": "2 times", "z": "0 times"} {
		_, err := Mutant{File: file, Old: old}.overlay(t.TempDir())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("overlay for %q = %v, want an error with %q", old, err, want)
		}
	}
}

// calm is what the mutants of TestKilledMutantIsTold change.
func calm() bool { return true }

func TestCalm(t *testing.T) {
	if !calm() {
		t.Error("not calm")
	}
}

func TestMutantIsCaughtOnlyByAFailingTest(t *testing.T) {
	if os.Getenv(env) != "" {
		t.Skip("runs on the real source only")
	}
	m := Mutant{File: "mutate.go", Old: "const limit = 2 * time.Minute", New: "const limit = 3 * time.Minute", Run: "^TestCalm$"}
	overlay, err := m.overlay(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := m.test(t.Context(), overlay); err != nil {
		t.Errorf("a harmless mutant failed its test: %v\n%s", err, out)
	}
	m.New = "const limit = "
	if overlay, err = m.overlay(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if out, err := m.test(t.Context(), overlay); err == nil || !strings.Contains(out, "[build failed]") && !strings.Contains(out, "[setup failed]") {
		t.Errorf("a mutant that does not compile: %v\n%s, want a failed build", err, out)
	}
}
