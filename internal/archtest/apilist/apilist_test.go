// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package apilist

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const source = `package p

const Big Size = 1 << 20
const small = 1

var ErrGone error

type Size int64

func (Size) String() string { return "" }
func (Size) hidden() {}

type inner struct{ Lent string }

func (*inner) Close() error { return nil }

type Store struct {
	inner
	Clock
	Dir    string
	secret int
}

func (s *Store) Put(name string, data []byte) (n int, err error) { return 0, nil }

type Clock interface {
	Now() int64
	private()
}

type Number interface{ ~int | ~int64 }

type Set[T comparable] struct{ Items []T }

func Open[T any](dir string, opts ...T) (*Store, error) { return nil, nil }

type Alias = Store
`

var listed = strings.Split(`const Big Size = 1048576
func Open[T any](string, ...T) (*Store, error)
method (*Store) Close() error
method (*Store) Put(string, []byte) (int, error)
method (Size) String() string
type Alias = Store
type Clock interface { Now, unexported methods }
type Clock interface, Now() int64
type Number interface {~int | ~int64}
type Set[T comparable] struct
type Set[T comparable] struct, Items []T
type Size int64
type Store struct
type Store struct, Dir string
type Store struct, Lent string
type Store struct, embedded Clock
var ErrGone error`, "\n")

func check(t *testing.T, text string) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := new(types.Config).Check("p", fset, []*ast.File{f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

// TestLines: one line per exported name, without the names of parameters, and none for what is not exported.
func TestLines(t *testing.T) {
	pkg := check(t, source)
	if diff := cmp.Diff(listed, Lines(pkg)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if n := Count(pkg); n != 11 { // 9 at the top level, String and Put; what inner lends is not counted
		t.Errorf("%d names, want 11", n)
	}
}

// TestCompareCatches shows listings that are stale, of a package that is gone, and over their limit.
func TestCompareCatches(t *testing.T) {
	pkgs := map[string]*types.Package{"lkg": check(t, "package p\n\nfunc A() {}\n\nfunc B() {}\n")}
	const text, limit = "func A()\nfunc B()\n", "lkg 2\ntotal 2\n"
	for _, c := range []struct {
		name   string
		listed Listing
		want   string
	}{
		{"as it is", Listing{"docs/api/lkg.txt": text, LimitsFile: limit}, ""},
		{"a new name", Listing{"docs/api/lkg.txt": "func A()\n", LimitsFile: limit}, "docs/api/lkg.txt: is not what the package exports:\n\t+ func B()"},
		{"a name that went", Listing{"docs/api/lkg.txt": text + "func C()\n", LimitsFile: limit}, "\t- func C()"},
		{"no listing", Listing{LimitsFile: limit}, "docs/api/lkg.txt: is not what"},
		{"a package that is gone", Listing{"docs/api/lkg.txt": text, "docs/api/old.txt": "", LimitsFile: limit}, "docs/api/old.txt: lists a package that is gone"},
		{"over the limit", Listing{"docs/api/lkg.txt": text, LimitsFile: "lkg 1\ntotal 1\n"}, "lkg: exports 2 names, at most 1"},
		{"a limit too high", Listing{"docs/api/lkg.txt": text, LimitsFile: "lkg 3\ntotal 3\n"}, "\t- lkg 3"},
		{"no limit", Listing{"docs/api/lkg.txt": text}, "\t+ lkg 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			vs, err := Compare(pkgs, c.listed)
			if err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for _, v := range vs {
				all.WriteString(v.String() + "\n")
			}
			if (c.want == "") != (len(vs) == 0) || !strings.Contains(all.String(), c.want) {
				t.Errorf("got %q, want %q in it", all.String(), c.want)
			}
		})
	}
}

// TestListRaisesNoLimit: writing the listings anew does not accept a wider API.
func TestListRaisesNoLimit(t *testing.T) {
	pkgs := map[string]*types.Package{"lkg": check(t, "package p\n\nfunc A() {}\n\nfunc B() {}\n"), "lkg/lkgtest": check(t, source)}
	for _, c := range []struct{ old, want string }{
		{"", "lkg 2\ntotal 2\n"}, {"lkg 1\n", "lkg 1\ntotal 1\n"}, {"lkg 9\ngone 3\n", "lkg 2\ntotal 2\n"},
	} {
		next, err := List(pkgs, Listing{LimitsFile: c.old})
		if err != nil {
			t.Fatal(err)
		}
		if next[LimitsFile] != c.want {
			t.Errorf("limits %q became %q, want %q", c.old, next[LimitsFile], c.want)
		}
	}
	if _, err := List(pkgs, Listing{LimitsFile: "lkg many\n"}); err == nil {
		t.Error("a limit that is no number is taken")
	}
}

// TestWrite: what was read is what was written, and the file of a package that is gone goes.
func TestWrite(t *testing.T) {
	root := t.TempDir()
	for _, l := range []Listing{
		{"docs/api/a.txt": "1\n", "docs/api/a/b.txt": "2\n", LimitsFile: "a 1\n"},
		{"docs/api/a/b.txt": "3\n", LimitsFile: "a/b 1\n"},
	} {
		if err := Write(root, l); err != nil {
			t.Fatal(err)
		}
		got, err := Read(root)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(l, got); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "docs/api/a.txt")); err == nil {
		t.Error("a.txt is still there")
	}
	if l, err := Read(t.TempDir()); err != nil || len(l) != 0 {
		t.Errorf("an empty folder reads as %v, %v", l, err)
	}
}
