// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// A listed package is what go list tells of it.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles, CgoFiles       []string
	ImportMap               map[string]string
	DepOnly                 bool
	Module                  *struct{ GoVersion string }
}

// A pkg is a package that is parsed and checked, as go build takes it on this platform.
type pkg struct {
	listed
	fset     *token.FileSet
	sources  []*source
	info     *types.Info
	importer types.Importer
	checking sync.Mutex // the importer is for one check at a time
}

// load reads and checks the package in a directory, with the export data of what it imports.
func load(ctx context.Context, dir string) (*pkg, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,CgoFiles,ImportMap,DepOnly,Module", ".")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w\n%s", dir, err, stderr.String())
	}
	p := &pkg{fset: token.NewFileSet()}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list in %s: %w", dir, err)
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly {
			p.listed = l
		}
	}
	p.importer = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) {
		if to := p.ImportMap[path]; to != "" {
			path = to
		}
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data for %q", path)
		}
		return os.Open(exports[path])
	})
	return p, p.parse()
}

func (p *pkg) parse() error {
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		s, err := parseSource(p.fset, filepath.Join(p.Dir, name), "")
		if err != nil {
			return err
		}
		p.sources = append(p.sources, s)
	}
	p.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
	}
	if errs := p.check(p.sources, p.info); len(errs) > 0 {
		return fmt.Errorf("check %s: %w", p.ImportPath, errs[0])
	}
	return nil
}

// check returns the type errors of a version of the package.
func (p *pkg) check(sources []*source, info *types.Info) []types.Error {
	var errs []types.Error
	files := make([]*ast.File, len(sources))
	for i, s := range sources {
		files[i] = s.file
	}
	c := types.Config{Importer: p.importer, FakeImportC: true, Error: func(err error) {
		var e types.Error
		if errors.As(err, &e) {
			errs = append(errs, e)
		}
	}}
	if p.Module != nil && p.Module.GoVersion != "" {
		c.GoVersion = "go" + p.Module.GoVersion
	}
	_, _ = c.Check(p.ImportPath, p.fset, files, info) // Error has the errors
	return errs
}

// errNotCompiled marks a mutant that is no Go program.
var errNotCompiled = errors.New("does not compile")

// repair returns the text of the mutated file. Variables and imports that are unused in the mutant become used.
func (p *pkg) repair(m mutant) (string, error) {
	i := slices.IndexFunc(p.sources, func(s *source) bool { return sameFile(s.path, m.source.path) })
	if i < 0 {
		return "", fmt.Errorf("%s is not built on this platform", m.source.path)
	}
	p.checking.Lock()
	defer p.checking.Unlock()
	text := m.mutated()
	for {
		s, err := parseSource(p.fset, p.sources[i].path, text)
		if err != nil {
			return "", fmt.Errorf("%w: %w", errNotCompiled, err)
		}
		version := slices.Clone(p.sources)
		version[i] = s
		errs := p.check(version, nil)
		if len(errs) == 0 {
			return text, nil
		}
		repaired := text
		for _, e := range slices.Backward(errs) {
			if at, insert := s.use(e); insert != "" {
				repaired = repaired[:at] + insert + repaired[at:]
			}
		}
		if repaired == text || !allUnused(errs) {
			return "", fmt.Errorf("%w: %w", errNotCompiled, errs[0])
		}
		text = repaired
	}
}

func sameFile(a, b string) bool {
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}

const (
	unusedVariable = "declared and not used: "
	unusedImport   = " imported and not used"
)

func allUnused(errs []types.Error) bool {
	return !slices.ContainsFunc(errs, func(e types.Error) bool {
		return !strings.HasPrefix(e.Msg, unusedVariable) && !strings.Contains(e.Msg, unusedImport)
	})
}

// use returns what to insert, and where, so that an unused variable or import is used.
func (s *source) use(e types.Error) (at int, insert string) {
	name, isVariable := strings.CutPrefix(e.Msg, unusedVariable)
	if !isVariable {
		for _, spec := range s.file.Imports {
			if spec.Pos() == e.Pos && spec.Name == nil {
				return s.offset(e.Pos), "_ "
			}
		}
		return 0, ""
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if n == nil || e.Pos < n.Pos() || e.Pos >= n.End() {
			return false
		}
		for _, st := range statements(n) {
			switch st.(type) {
			case *ast.AssignStmt, *ast.DeclStmt:
				if st.Pos() <= e.Pos && e.Pos < st.End() {
					at, insert = s.offset(st.End()), "; _ = "+name
				}
			}
		}
		// A variable of an if, a loop or a switch is used first thing in its body.
		if start := bodyStart(n); e.Pos < start {
			at, insert = s.offset(start), " _ = "+name+";"
		}
		return true
	})
	return at, insert
}

// bodyStart returns where the body of an if or a loop, or the first case of a switch, begins.
func bodyStart(n ast.Node) token.Pos {
	switch n := n.(type) {
	case *ast.IfStmt:
		return n.Body.Lbrace + 1
	case *ast.ForStmt:
		return n.Body.Lbrace + 1
	case *ast.RangeStmt:
		return n.Body.Lbrace + 1
	case *ast.SwitchStmt:
		return firstCase(n.Body)
	case *ast.TypeSwitchStmt:
		return firstCase(n.Body)
	}
	return token.NoPos
}

func firstCase(body *ast.BlockStmt) token.Pos {
	if len(body.List) == 0 {
		return token.NoPos
	}
	return body.List[0].(*ast.CaseClause).Colon + 1
}
