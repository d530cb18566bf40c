// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/raceshare"
)

// sharing is a module whose package a has a test that leaves something out under the race detector, as raceshare does it. That test has one
// subtest under the detector and three without, and does what broken says without it.
func sharing(t *testing.T, broken string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "go.mod", module)
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if broken == "" { // another package
		write(t, dir, "b_test.go", passing)
	}
	write(t, dir, "a/on_test.go", "//go:build race\n\npackage a\n\nimport \"testing\"\n\n"+
		"func cases(t *testing.T) int { t.Attr(\""+raceshare.Attribute+"\", \"one in three\"); return 1 }\n")
	write(t, dir, "a/off_test.go", "//go:build !race\n\npackage a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar exit = os.Exit\n\nfunc cases(t *testing.T) int { "+broken+"return 3 }\n")
	write(t, dir, "a/a_test.go", "package a\n\nimport \"testing\"\n\nfunc TestOther(t *testing.T) { t.Attr(\"colour\", \"green\") }\n\n"+
		"func TestLong(t *testing.T) {\n\tt.Run(\"all\", func(t *testing.T) {\n\t\tfor range cases(t) {\n\t\t\tt.Run(\"\", func(*testing.T) {})\n\t\t}\n\t})\n}\n")
	return dir
}

// TestSharesAreMadeGood shows that what does a share of its work under the race detector, and only that, runs once more without it and counts
// again, and that its failures there count too. Without the detector each test runs once, and does all of it.
func TestSharesAreMadeGood(t *testing.T) {
	const again = "without the race detector, what does a share of its work under it: 1 tests of 1 packages\n"
	for _, c := range []struct {
		name, race, broken string
		want               error
		again              bool
		says               string
	}{
		{"on", "auto", "", nil, true, "\n11 passed, 0 failed, 0 skipped\n"}, // 2 of the other package, 4 of a, and 5 again
		{"off", "off", "", nil, false, "\n8 passed, 0 failed, 0 skipped\n"},
		{"fails in full", "auto", "t.Error(\"case 2\"); ", errFailed, true, "\n7 passed, 2 failed, 0 skipped\n"},
		{"ends early in full", "auto", "exit(3); ", errFailed, true, "\n4 passed, 1 failed, 0 skipped\n"},
		{"is skipped in full", "auto", "t.Skip(\"no time\"); ", errFailed, true, "skipped without leave: example.test/m/a.TestLong/all: "},
		{"leaves something out for ever", "auto", "t.Attr(\"" + raceshare.Attribute + "\", \"\"); ", errFailed, true, "leave out something without the race detector"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if missing := noCompiler(t.Context()); missing != "" && c.race == "auto" {
				t.Log("there is no race detector here:", missing) // the row "off" shows all that there is to be seen
				return
			}
			dir := sharing(t, c.broken)
			var out bytes.Buffer
			if err := run(t.Context(), []string{"-race", c.race, dir}, &out); !errors.Is(err, c.want) {
				t.Errorf("got error %v, want %v", err, c.want)
			}
			if got := strings.Contains(out.String(), again); got != c.again || !strings.Contains(out.String(), c.says) {
				t.Errorf("ran again: %t, want %t and %q:\n%s", got, c.again, c.says, out.String())
			}
		})
	}
}
