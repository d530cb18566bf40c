// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"os"
	"strings"
	"testing"
)

// ownMutants are of this package: the first three can be in one program, the others cannot.
func ownMutants() []Mutant {
	const run = "^(TestOnlyBodiesStandBesideEachOther|TestVersionsStandBesideEachOther)$"
	return []Mutant{
		{Name: "arguments are not passed on", File: "rewrite.go", Run: run, Old: `			name += "..."`, New: `			name += ""`},
		{Name: "signatures may differ", File: "rewrite.go", Run: run, Old: ` || s.head(before) != other.head(after)`, New: ``},
		{Name: "harmless", File: "rewrite.go", Run: run, Old: "return at, len(at) > 0", New: "return at, len(at) >= 1"},
		{Name: "of another name", File: "rewrite.go", Run: run, Old: `const selector = "belayMutant"`, New: `const selector = "other"`},
		{Name: "in a test", File: "rewrite_test.go", Run: run, Old: `"// Sum does not.", ` + `0}`, New: `"", 1}`},
	}
}

// TestMutantsAreBuiltTogether shows that each mutant in a program is that one alone, that those which cannot be in it have programs of their own,
// and that all of them have their own if one does not compile.
func TestMutantsAreBuiltTogether(t *testing.T) {
	if os.Getenv(env) != "" {
		t.Skip("runs on the real source only")
	}
	mutants := ownMutants()
	b := newBatch(t, mutants)
	own := map[string]bool{}
	for i, m := range mutants {
		p, err := b.program(t.Context(), i, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		own[p.path] = true
		want := ""
		if m.Name == "harmless" {
			want = "does not catch"
		}
		if err := m.test(t.Context(), p); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", m.Name, err, want)
		}
	}
	if len(own) != 3 {
		t.Errorf("got %d programs, want one for the first three, and one for each of the others: %v", len(own), own)
	}
}

// TestMutantThatDoesNotCompileStopsNoOther shows that it is told of that mutant alone.
func TestMutantThatDoesNotCompileStopsNoOther(t *testing.T) {
	if os.Getenv(env) != "" {
		t.Skip("runs on the real source only")
	}
	mutants := ownMutants()[:3]
	mutants[2].New = "return at, at > 0"
	b := newBatch(t, mutants)
	if _, err := b.program(t.Context(), 2, t.TempDir()); err == nil || !strings.Contains(err.Error(), "does not compile") {
		t.Errorf("got %v, want an error that says so", err)
	}
	p, err := b.program(t.Context(), 0, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := mutants[0].test(t.Context(), p); err != nil {
		t.Error(err)
	}
}
