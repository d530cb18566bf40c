// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// module writes a module of one package and returns its directory.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.org/small\n\ngo 1.25\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const smallTest = `package small

import ("os"; "testing"; "time")

func TestTested(t *testing.T) {
	if os.Getenv("HANG") != "" { time.Sleep(time.Hour) }
	if !Tested(3) || Tested(2) { t.Error("wrong") }
}
`

// TestExplore demands that a mutant of tested code is killed, that one of code without a test survives, and that the report says which.
func TestExplore(t *testing.T) {
	dir := module(t, map[string]string{
		"small.go":      "package small\n\nfunc Tested(n int) bool {\n\treturn n > 2\n}\n\nfunc Untested(p bool) bool {\n\treturn p == true\n}\n",
		"small_test.go": smallTest,
	})
	var out strings.Builder
	r, err := Explore(t.Context(), Options{Dir: dir, Seed: 1, Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"killed           small.go:4 Tested move-boundary: n > 2: > becomes >= (TestTested)",
		"killed           small.go:4 Tested change-constant: 2: replace it by 0 (TestTested)",
		"survived         small.go:8 Untested flip-equality: p == true: == becomes !=",
		"survived         small.go:8 Untested flip-boolean: true: replace it by false",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("the report lacks %q:\n%s", line, out.String())
		}
	}
	if r.Generated != 5 || r.Counts[Killed] != 3 || r.Counts[Survived] != 2 || r.Rate() != 0.6 {
		t.Errorf("got %+v, rate %v; want 5 mutants, 3 killed, 2 survived, rate 0.6", r, r.Rate())
	}
}

// Tests that fail on the real source, or that are none, say nothing about mutants.
func TestExploreNeedsTestsThatPass(t *testing.T) {
	dir := module(t, map[string]string{
		"small.go":      "package small\n\nfunc Tested(n int) bool { return n > 3 }\n",
		"small_test.go": smallTest,
	})
	for run, want := range map[string]string{"": "do not pass", "^TestNone$": "no test matches"} {
		_, err := Explore(t.Context(), Options{Dir: dir, Run: run, Out: &strings.Builder{}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Explore with tests %q = %v, want an error with %q", run, err, want)
		}
	}
}

// Tests that hang are ended with their process group.
func TestHungTestsTimeOut(t *testing.T) {
	dir := module(t, map[string]string{
		"small.go":      "package small\n\nfunc Tested(n int) bool { return n > 2 }\n",
		"small_test.go": smallTest,
	})
	t.Setenv("HANG", "1")
	s := suite{dir: dir}
	program, err := s.build(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if outcome, detail := s.execute(t.Context(), dir, program, "", time.Second); outcome != TimedOut {
		t.Errorf("a test that hangs: %s %s, want %s", outcome, detail, TimedOut)
	}
}

// Verdicts come in the order of the mutants, whichever test ends first, and no more tests run at a time than asked for.
func TestVerdictsComeInOrder(t *testing.T) {
	for _, parallel := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			mutants := make([]mutant, 10)
			for i := range mutants {
				mutants[i].line = i
			}
			var running, most atomic.Int32
			next := 0
			for m, v := range inOrder(mutants, parallel, func(m mutant) verdict {
				now := running.Add(1)
				defer running.Add(-1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				time.Sleep(time.Duration(10-m.line) * time.Second)
				return verdict{detail: strconv.Itoa(m.line)}
			}) {
				if m.line != next || v.detail != strconv.Itoa(next) {
					t.Errorf("verdict %d is of mutant %d: %q", next, m.line, v.detail)
				}
				next++
			}
			if next != len(mutants) || int(most.Load()) != parallel {
				t.Errorf("%d verdicts, %d tests at a time; want %d and %d", next, most.Load(), len(mutants), parallel)
			}
		})
	}
}
