// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// updateVariable, set to anything, makes [Check] write the files instead: look at the difference before committing it.
const updateVariable = "UPDATE_GOLDEN"

// mutantVariable is set where package mutate runs the tests on a broken source, whose output is never written.
const mutantVariable = "BELAY_MUTANT"

// Check compares got with testdata/name.
func Check(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv(updateVariable) != "" && os.Getenv(mutantVariable) == "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // as any file of the tree
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		number, g, w := firstDifference(got, string(want))
		t.Errorf("%s (%s=1 writes it anew): got\n%s\nwhose line %d is %q, want %q", path, updateVariable, got, number, g, w)
	}
}

// firstDifference finds the first line, counted from 1, in which two texts differ. A text that is over has empty lines.
func firstDifference(got, want string) (number int, g, w string) {
	for got != "" || want != "" {
		number++
		g, got, _ = strings.Cut(got, "\n")
		w, want, _ = strings.Cut(want, "\n")
		if g != w {
			break
		}
	}
	return number, g, w
}
