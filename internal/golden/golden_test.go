// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// recorder notes what a check says instead of failing.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Errorf(f string, a ...any) { r.said += fmt.Sprintf(f, a...) }
func (r *recorder) Fatal(a ...any)            { r.said += fmt.Sprint(a...) }

func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"text.txt", "one\ntwo\nthree\n", ""},
		{"text.txt", "one\n2\nthree\n", `whose line 2 is "2", want "two"`},
		{"text.txt", "one\ntwo\n", `whose line 3 is "", want "three"`},
		{"text.txt", "one\ntwo\nthree\nfour\n", `whose line 4 is "four", want ""`},
		{"text.txt", "one\ntwo\nthree", "UPDATE_GOLDEN=1 writes it anew"},
		{"none.txt", "", "no such file"},
	} {
		r := &recorder{TB: t}
		Check(r, c.name, c.got)
		if (r.said == "") != (c.want == "") || !strings.Contains(r.said, c.want) {
			t.Errorf("%s and %q: said %q, want %q in it", c.name, c.got, r.said, c.want)
		}
	}
}

func TestUpdateWritesTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("testdata", 0o755); err != nil { //nolint:gosec // as in a tree
		t.Fatal(err)
	}
	t.Setenv(updateVariable, "1")
	Check(t, "new.txt", "new\n")
	t.Setenv(mutantVariable, "a mutant")
	r := &recorder{TB: t}
	if Check(r, "new.txt", "broken\n"); r.said == "" {
		t.Error("a mutant has written its output, want it compared")
	}
	Check(t, "new.txt", "new\n")
}
