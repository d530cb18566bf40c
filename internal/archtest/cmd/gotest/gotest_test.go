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
)

const module = `module example.test/m

go 1.26
`

const passing = `package m

import "testing"

func TestGood(t *testing.T) { t.Run("sub", func(*testing.T) {}) }
`

const skipping = `package m

import "testing"

func TestNeedsRoot(t *testing.T) { t.Skip("needs root, and this is not") }

func TestGood(*testing.T) {}
`

// TestRunJudges runs the command on small modules: what passes, what fails and how, and which skips are allowed.
func TestRunJudges(t *testing.T) {
	for _, c := range []struct {
		name, code, allow string
		want              error
		says              []string
	}{
		{"pass", passing, "", nil, []string{"ok  \texample.test/m", "\n2 passed, 0 failed, 0 skipped\n"}},
		{"fail", "package m\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Error(\"broken thing\") }\n", "", errFailed,
			[]string{"broken thing", "--- FAIL: TestBad", "\n0 passed, 1 failed, 0 skipped\n"}},
		{"does not build", "package m\n\nfunc F() { undefined() }\n", "", errFailed,
			[]string{"undefined: undefined", "\n0 passed, 1 failed, 0 skipped\n"}},
		{"ends early", "package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestX(t *testing.T) { t.Log(\"last words\"); os.Exit(3) }\n", "", errFailed,
			[]string{"last words", "0 passed, 1 failed, 0 skipped\n"}},
		{"no test", "package m\n", "", errFailed, []string{"no test ran\n", "0 passed, 1 failed, 0 skipped\n"}},
		{"skip without leave", skipping, "", errFailed,
			[]string{"skipped without leave: example.test/m.TestNeedsRoot: ", "needs root, and this is not", "\n1 passed, 0 failed, 1 skipped\n"}},
		{"skip with leave", skipping, "example.test/m TestNeeds.* no root in this test\n", nil,
			[]string{"skipped, as allowed (no root in this test): example.test/m.TestNeedsRoot: ", "\n1 passed, 0 failed, 1 skipped\n"}},
		{"leave for a part of the name", skipping, "example.test/m Needs no root\n", errFailed, []string{"skipped without leave"}},
		{"leave for another package", skipping, "example.test/n TestNeeds.* no root\n", errFailed, []string{"skipped without leave"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "go.mod", module)
			write(t, dir, "a.go", "package m\n")
			write(t, dir, "a_test.go", c.code)
			write(t, dir, "skips.txt", c.allow)
			var out bytes.Buffer
			err := run(t.Context(), []string{"-race", "off", "-allow", filepath.Join(dir, "skips.txt"), dir}, &out)
			if !errors.Is(err, c.want) {
				t.Errorf("got error %v, want %v", err, c.want)
			}
			for _, s := range c.says {
				if !strings.Contains("\n"+out.String(), s) {
					t.Errorf("the output lacks %q:\n%s", s, out.String())
				}
			}
		})
	}
}

// TestRunTakesSeveralModules shows that one total covers all directories, and that one bad module is enough to fail.
func TestRunTakesSeveralModules(t *testing.T) {
	good, bad := t.TempDir(), t.TempDir()
	for _, dir := range []string{good, bad} {
		write(t, dir, "go.mod", module)
		write(t, dir, "a_test.go", passing)
	}
	write(t, bad, "b_test.go", "package m\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Fail() }\n")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-race", "off", good, bad}, &out); !errors.Is(err, errFailed) {
		t.Errorf("got error %v, want %v", err, errFailed)
	}
	if !strings.HasSuffix(out.String(), "\n4 passed, 1 failed, 0 skipped\n") {
		t.Errorf("the output does not end with the total of both:\n%s", out.String())
	}
}

// TestFirstPackagesComeFirst shows that the order is that of -first, that a package runs once, and that one which is not there is left out.
func TestFirstPackagesComeFirst(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "go.mod", module)
	for _, pkg := range []string{"a", "b", "c"} {
		if err := os.Mkdir(filepath.Join(dir, pkg), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, dir, pkg+"/a_test.go", passing)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-race", "off", "-args", "-p 1", "-first", "c elsewhere", dir}, &out); err != nil {
		t.Fatal(err)
	}
	var order []string
	for line := range strings.Lines(out.String()) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "ok" {
			order = append(order, filepath.Base(fields[1]))
		}
	}
	if got := strings.Join(order, " "); got != "c a b" {
		t.Errorf("the packages ran as %q, want c first:\n%s", got, out.String())
	}
}

// TestRulesRejected shows that a line that says too little, or something unknown, is an error with its number.
func TestRulesRejected(t *testing.T) {
	for _, line := range []string{"lkg TestX", "lkg", "lkg Test( because"} {
		if _, err := parseRules("\n" + line); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: got error %v, want one with line 2", line, err)
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
