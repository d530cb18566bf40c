// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEnvironmentOfTests shows that what a user has set himself is kept: the runtime takes the last of several, and of options too.
func TestEnvironmentOfTests(t *testing.T) {
	for _, c := range []struct {
		env      []string
		gc, race string
	}{
		{nil, "GOGC=400", "GORACE=atexit_sleep_ms=0 "},
		{[]string{"A=b", "GOGC=50"}, "GOGC=50", "GORACE=atexit_sleep_ms=0 "},
		{[]string{"GORACE=halt_on_error=1 atexit_sleep_ms=7"}, "GOGC=400", "GORACE=atexit_sleep_ms=0 halt_on_error=1 atexit_sleep_ms=7"},
	} {
		if got, want := environ(c.env), append(slices.Clone(c.env), c.gc, c.race, "GOWORK=off"); !slices.Equal(got, want) {
			t.Errorf("of %q: got %q, want %q", c.env, got, want)
		}
	}
}

// TestLanesRunBesideEachOther shows that a second module does not wait for the first: a test of the first one waits for it.
func TestLanesRunBesideEachOther(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "second")
	dir, second := t.TempDir(), t.TempDir()
	write(t, dir, "go.mod", module)
	write(t, dir, "b_test.go", "package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestWaits(t *testing.T) {\n"+
		"\tfor end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {\n"+
		"\t\tif _, err := os.Stat("+strconv.Quote(mark)+"); err == nil {\n\t\t\treturn\n\t\t}\n"+
		"\t\tif time.Now().After(end) {\n\t\t\tt.Fatal(\"no second module\")\n\t\t}\n\t}\n}\n")
	write(t, second, "go.mod", module)
	write(t, second, "a_test.go", fmt.Sprintf(
		"package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestSecond(*testing.T) { os.WriteFile(%q, nil, 0o600) }\n", mark))
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-race", "off", dir, second}, &out); err != nil {
		t.Errorf("got error %v:\n%s", err, out.String())
	}
}

// TestPackagesOfAModule shows that of the packages to begin with a module gets its own alone: those that are there, and in no module within.
func TestPackagesOfAModule(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"lkg", "sync/systemd", "examples/agent"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, root, "sync/systemd/go.mod", module)
	write(t, root, "examples/go.mod", module)
	first := []string{"examples/agent", "sync/systemd", "gone", "lkg"}
	for dir, want := range map[string]string{"": "./lkg", "examples": "./agent", "sync/systemd": "./."} {
		if got := strings.Join(inside(root, filepath.Join(root, dir), first), " "); got != want {
			t.Errorf("module %q: got %q, want %q", dir, got, want)
		}
	}
}
