// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"fmt"
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

// alone builds the program of one mutant.
func alone(t *testing.T, m Mutant) (program, error) {
	t.Helper()
	return newBatch(t, []Mutant{m}).program(t.Context(), 0, t.TempDir())
}

func TestMutantIsCaughtOnlyByAFailingTest(t *testing.T) {
	if os.Getenv(env) != "" {
		t.Skip("runs on the real source only")
	}
	harmless := Mutant{File: "mutate.go", Old: "const limit = 4 * time.Minute", New: "const limit = 3 * time.Minute", Run: "^TestCalm$"}
	nowhere, broken := harmless, harmless
	nowhere.Run = "^TestNothing$"
	broken.File, broken.Old, broken.New = "mutate_test.go", "bool { return "+"true }", "bool { return false }"
	for _, c := range []struct {
		mutant Mutant
		want   string
	}{{harmless, "does not catch"}, {nowhere, "no test matches"}, {broken, ""}} {
		p, err := alone(t, c.mutant)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.mutant.test(t.Context(), p); c.want == "" && err != nil || c.want != "" && !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%q on %q: got %v, want %q", c.mutant.Run, c.mutant.New, err, c.want)
		}
	}
	if err := harmless.test(t.Context(), program{path: "no-such-program"}); !strings.Contains(fmt.Sprint(err), "did not run") {
		t.Errorf("without a program: got %v, want an error that says so", err)
	}
	bad := harmless
	bad.New = "const limit = "
	if _, err := alone(t, bad); !strings.Contains(fmt.Sprint(err), "does not compile") {
		t.Errorf("a mutant that does not compile: %v, want an error that says so", err)
	}
}
