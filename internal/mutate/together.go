// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"context"
	"fmt"
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A batch builds the programs of a table. To build a program takes longer than most tests do; so those mutants that change bodies of functions
// alone are built together: one program has all their versions of these functions, and runs those of the mutant whose number is in its
// environment. The others have programs of their own.
type batch struct {
	mutants  []Mutant
	dir      string
	building sync.Mutex // they are built one after another: that is work
	together func() (of map[int]bool, p program)
}

func newBatch(t *testing.T, mutants []Mutant) *batch {
	t.Helper()
	b := &batch{mutants: mutants, dir: tempDir(t)}
	b.together = sync.OnceValues(func() (map[int]bool, program) {
		of, p, err := b.buildTogether(t.Context())
		if err != nil {
			t.Logf("each mutant has a program of its own: %v", err)
			return nil, program{}
		}
		return of, p
	})
	return b
}

// program gives the program of one mutant, with its own files in dir.
func (b *batch) program(ctx context.Context, i int, dir string) (program, error) {
	if of, p := b.together(); of[i] {
		p.env = append(slices.Clone(p.env), env+"="+strconv.Itoa(i+1), "TMPDIR="+dir)
		return p, nil
	}
	overlay, err := b.mutants[i].overlay(dir)
	if err != nil {
		return program{}, err
	}
	b.building.Lock()
	defer b.building.Unlock()
	p, err := build(ctx, overlay, dir)
	p.env = append(p.env, env+"="+strconv.Itoa(i+1), "TMPDIR="+dir)
	return p, err
}

// buildTogether builds the program that has several mutants in it, and says which.
func (b *batch) buildTogether(ctx context.Context) (of map[int]bool, p program, err error) {
	replace, of, err := merge(b.mutants)
	if err != nil || len(of) < 2 {
		return nil, program{}, err
	}
	overlay, err := writeOverlay(b.dir, replace)
	if err != nil {
		return nil, program{}, err
	}
	p, err = build(ctx, overlay, b.dir)
	return of, p, err
}

// A merged file is one with the versions of several mutants.
type merged struct {
	source
	versions map[int]map[int]string
}

// merge gives the files that hold several mutants, by the names of those that they replace, and says which mutants these are.
func merge(mutants []Mutant) (replace map[string]string, of map[int]bool, err error) {
	files, of := map[string]*merged{}, map[int]bool{}
	for i, m := range mutants {
		if of[i], err = m.join(files, i+1); err != nil {
			return nil, nil, err
		}
	}
	maps.DeleteFunc(of, func(_ int, joined bool) bool { return !joined })
	replace = map[string]string{}
	for path, f := range files {
		if len(f.versions) > 0 {
			replace[path] = f.with(f.versions)
			replace[filepath.Join(filepath.Dir(path), "zz_belay_mutant.go")] = fmt.Sprintf(
				"package %s\n\nimport (\n\tmutantos \"os\"\n\tmutantconv \"strconv\"\n)\n\nvar %s, _ = mutantconv.Atoi(mutantos.Getenv(%q))\n", f.file.Name.Name, selector, env)
		}
	}
	return replace, of, nil
}

// join adds a mutant under a number to those in a file, unless it cannot stand beside others.
func (m Mutant) join(files map[string]*merged, number int) (joined bool, err error) {
	path, text, err := m.read()
	if err != nil || strings.HasSuffix(path, "_test.go") {
		return false, err
	}
	f := files[path]
	if f == nil {
		f = &merged{versions: map[int]map[int]string{}}
		if f.source, err = parse(text); err != nil {
			return false, err
		}
		files[path] = f
	}
	mutated, err := parse(strings.Replace(text, m.Old, m.New, 1))
	if err != nil {
		return false, err
	}
	at, ok := f.changed(mutated)
	if !ok {
		return false, nil
	}
	for _, i := range at {
		if f.versions[i] == nil {
			f.versions[i] = map[int]string{}
		}
		f.versions[i][number] = mutated.version(mutated.file.Decls[i].(*ast.FuncDecl), number)
	}
	return true, nil
}

func sortedKeys[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }
