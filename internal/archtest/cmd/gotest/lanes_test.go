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
		if got, want := environ(c.env), append(slices.Clone(c.env), c.gc, c.race); !slices.Equal(got, want) {
			t.Errorf("of %q: got %q, want %q", c.env, got, want)
		}
	}
}

// TestSharesAreTakenInOrder shows that one package is taken at a time, the longest first, and in the end all that there is of a module, with
// the tests of each.
func TestSharesAreTakenInOrder(t *testing.T) {
	fill := func() *report {
		r := newReport(nil, nil)
		r.shares = []share{
			{".", []string{"example.test/a"}, []string{"TestY", "TestX"}}, {"n", []string{"example.test/n"}, []string{"TestN"}},
			{".", []string{"example.test/b"}, []string{"TestX"}}, {".", []string{"example.test/c"}, []string{"TestZ"}},
		}
		return r
	}
	for all, want := range map[bool]string{
		false: ". [example.test/b] [TestX]\n. [example.test/a] [TestX TestY]\nn [example.test/n] [TestN]\n. [example.test/c] [TestZ]\n",
		true:  ". [example.test/b example.test/a example.test/c] [TestX TestY TestZ]\nn [example.test/n] [TestN]\n",
	} {
		r := fill()
		var got strings.Builder
		for {
			s, found := r.takeShare([]string{"example.test/b"}, all)
			if !found {
				break
			}
			fmt.Fprintln(&got, s.dir, s.pkgs, s.tests)
		}
		if got.String() != want {
			t.Errorf("all %t: got\n%s\nwant\n%s", all, got.String(), want)
		}
	}
}

// TestLanesRunBesideEachOther shows that a package of the first module and what another of its packages has left out run at the same time, and
// that a second module does not wait for the first: a test of the first one waits for both.
func TestLanesRunBesideEachOther(t *testing.T) {
	if missing := noCompiler(t.Context()); missing != "" {
		t.Log("there is no race detector here:", missing) // nothing is left out
		return
	}
	marks := t.TempDir()
	leave := func(name string) string {
		return fmt.Sprintf("os.WriteFile(%q, nil, 0o600)", filepath.Join(marks, name))
	}
	dir, second := sharing(t, leave("share")+"; "), t.TempDir()
	write(t, dir, "b_test.go", "package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestWaits(t *testing.T) {\n\tfor _, name := range []string{\"share\", \"second\"} {\n"+
		"\t\tfor end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {\n\t\t\tif _, err := os.Stat("+strconv.Quote(marks+"/")+" + name); err == nil {\n\t\t\t\tbreak\n\t\t\t}\n"+
		"\t\t\tif time.Now().After(end) {\n\t\t\t\tt.Fatalf(\"no %s\", name)\n\t\t\t}\n\t\t}\n\t}\n}\n")
	write(t, second, "go.mod", module)
	write(t, second, "a_test.go", "package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestSecond(*testing.T) { "+leave("second")+" }\n")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-race", "on", "-args", "-p=2", dir, second}, &out); err != nil {
		t.Errorf("got error %v:\n%s", err, out.String())
	}
	if entries, err := os.ReadDir(marks); err != nil || len(entries) != 2 {
		t.Errorf("got %d marks and error %v, want both", len(entries), err)
	}
}
