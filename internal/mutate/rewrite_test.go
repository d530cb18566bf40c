// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"go/ast"
	"go/types"
	"strings"
	"testing"
)

const original = `package p

// limit is a bound.
const limit = 3

type T[K any] struct{ n int }

type S struct{ n int }

// Sum adds up.
func (s *S) Sum(from int, _ string, more ...int) (total, count int) {
	for _, m := range more {
		total += m
	}
	return total + from + s.n, len(more)
}

func double(int, bool) int { return limit }

func quiet(s *S) { s.n++ }

func Generic[K any, V []K](k K, v V) (K, V) { return k, v }

func (t T[K]) Get() int { return t.n }

func guard() {
	if r := recover(); r != nil {
		quiet(nil)
	}
}
`

// TestOnlyBodiesStandBesideEachOther shows which mutants can be in one program with others.
func TestOnlyBodiesStandBesideEachOther(t *testing.T) {
	s, err := parse(original)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, old, new string
		want           int
	}{
		{"body", "total += m", "total -= m", 1},
		{"two bodies", "return total + from + s.n, len(more)\n}\n\nfunc double(int, bool) int { return limit }", "return 0, 0\n}\n\nfunc double(int, bool) int { return 0 }", 2},
		{"comment", "// Sum adds up.", "// Sum does not.", 0},
		{"constant", "limit = 3", "limit = 4", 0},
		{"type", "type S struct{ n int }", "type S struct{ n int64 }", 0},
		{"signature", "double(int, bool)", "double(int, int)", 0},
		{"receiver", "(s *S) Sum", "(s S) Sum", 0},
		{"another function", "func quiet(s *S) { s.n++ }", "func quiet(s *S) { s.n++ }\n\nfunc more() {}", 0},
		{"type parameters", "return k, v", "return k, nil", 1},
		{"type parameters of the receiver", "return t.n", "return 0", 1},
		{"recovery", "quiet(nil)", "quiet(&S{})", 0},
	} {
		other, err := parse(strings.Replace(original, c.old, c.new, 1))
		if err != nil {
			t.Fatal(err)
		}
		if at, ok := s.changed(other); len(at) != c.want || ok != (c.want > 0) {
			t.Errorf("%s: got %v, %t, want %d functions", c.name, at, ok, c.want)
		}
	}
}

// TestVersionsStandBesideEachOther shows what a file with several versions looks like, and that it compiles.
func TestVersionsStandBesideEachOther(t *testing.T) {
	s, err := parse(original)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[int]map[int]string{}
	for number, c := range [][2]string{{"total += m", "total -= m"}, {"return limit", "return -limit"}, {"s.n++", "s.n--"}, {"total + from", "total"}, {"return k, v", "return k, nil"}, {"t.n }", "0 }"}} {
		other, err := parse(strings.Replace(original, c[0], c[1], 1))
		if err != nil {
			t.Fatal(err)
		}
		at, _ := s.changed(other)
		for _, i := range at {
			if versions[i] == nil {
				versions[i] = map[int]string{}
			}
			versions[i][number+1] = other.version(other.file.Decls[i].(*ast.FuncDecl), number+1)
		}
	}
	got := s.with(versions)
	for _, want := range []string{
		"// Sum adds up.\nfunc (self *S) Sum(mutantArg0 int, mutantArg1 string, mutantArg2 ...int) (int, int) {\n\tswitch belayMutant {\n" +
			"\tcase 1:\n\t\treturn self.Sum_mutant1(mutantArg0, mutantArg1, mutantArg2...)\n" +
			"\tcase 4:\n\t\treturn self.Sum_mutant4(mutantArg0, mutantArg1, mutantArg2...)\n\t}\n" +
			"\treturn self.Sum_mutant0(mutantArg0, mutantArg1, mutantArg2...)\n}\n\nfunc (s *S) Sum_mutant0(from int,",
		"func double_mutant2(int, bool) int { return -limit }\n",
		"func double(mutantArg0 int, mutantArg1 bool) (int) {",
		"\tcase 3:\n\t\tquiet_mutant3(mutantArg0)\n\treturn\n\t}\n\tquiet_mutant0(mutantArg0)\n\treturn\n}",
		"func Generic[K any, V []K](mutantArg0 K, mutantArg1 V) (K, V) {\n\tswitch belayMutant {\n\tcase 5:\n\t\treturn Generic_mutant5[K, V](mutantArg0, mutantArg1)\n",
		"func (self T[K]) Get() (int) {",
		"func guard() {\n\tif r := recover()",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the file lacks\n%s\nit is\n%s", want, got)
		}
	}
	both, err := parse(got + "\nvar " + selector + " int\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := new(types.Config).Check("p", both.fset, []*ast.File{both.file}, nil); err != nil {
		t.Errorf("%v:\n%s", err, got)
	}
}
