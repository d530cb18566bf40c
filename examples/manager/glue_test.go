// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"testing"
)

// TestGlueIsShort counts the lines that an embedder writes for each of the three: those with code, without the package
// clause and the imports.
func TestGlueIsShort(t *testing.T) {
	page, err := os.ReadFile("../../docs/embedding/controller-runtime.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, most := range map[string]int{"drain.go": 40, "rollout.go": 60, "machine.go": 60} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := countGlue(text)
		t.Logf("%s has %d lines of glue, of at most %d", file, n, most)
		if n > most || n == 0 {
			t.Errorf("%s has %d lines of glue, want 1 to %d: mend the doors of the library, not this file", file, n, most)
		}
		if row := fmt.Sprintf("[%s](../../examples/manager/%s) | %d |", file, file, n); !bytes.Contains(page, []byte(row)) {
			t.Errorf("docs/embedding/controller-runtime.md lacks %q", row)
		}
	}
}

// countGlue counts the lines on which a token stands, after the imports.
func countGlue(text []byte) int {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0) // without comments
	lines := map[int]bool{}
	skip := false
	for {
		pos, tok, lit := s.Scan()
		switch {
		case tok == token.EOF:
			return len(lines)
		case tok == token.PACKAGE || tok == token.IMPORT:
			skip = true
		case tok == token.CONST || tok == token.VAR || tok == token.TYPE || tok == token.FUNC:
			skip = false
		}
		if skip || tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		lines[file.Line(pos)] = true
	}
}

// TestCountGlue: comments, blank lines and imports are not glue.
func TestCountGlue(t *testing.T) {
	const text = "// Package\n\npackage main\n\nimport (\n\t\"fmt\"\n)\n\n" +
		"// f is.\nfunc f() {\n\n\t// why\n\tfmt.Println(\n\t\t1)\n}\n"
	if n := countGlue([]byte(text)); n != 4 {
		t.Errorf("%d lines of glue, want 4", n)
	}
}
