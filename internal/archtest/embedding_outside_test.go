// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wholePages are the pages whose Go code is whole programs.
func wholePages() []string { return []string{"configsync", "identity", "machine", "rollout"} }

// Every Go block of these pages is a whole file, which compiles as it stands in a module outside of the repository.
func TestPagesCompileOutside(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	n := 0
	for _, page := range wholePages() {
		text, err := os.ReadFile(filepath.Join(root, embeddingDir, page+".md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range goBlocks(text) {
			if !strings.HasPrefix(b.code, "package ") {
				t.Errorf("%s.md:%d: Go code that is not a whole program: show the whole file", page, b.line)
				continue
			}
			n++
			program := filepath.Join(dir, fmt.Sprintf("%s%d", page, n))
			writeAll(t, filepath.Join(program, "program_test.go"), []byte(b.code))
		}
	}
	if n == 0 {
		t.Fatal("the pages have no program")
	}
	writeOutsideModule(t, root, dir)
	cmd := exec.Command("go", "vet", "./...")
	cmd.Dir = dir
	cmd.Env = append(slices.Clone(os.Environ()), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%d programs of the pages, outside of the repository: %v\n%s", n, err, out)
	}
}

// writeOutsideModule makes the module of an embedder: it has the versions of the library's own requirements.
func writeOutsideModule(t *testing.T, root, dir string) {
	t.Helper()
	own, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, requirements, ok := bytes.Cut(own, []byte("\n"))
	if !ok {
		t.Fatal("go.mod has one line")
	}
	module := "module example.com/embedder\n" + string(requirements) +
		"\nrequire github.com/belayproject/belay v0.0.0\n\nreplace github.com/belayproject/belay => " + root + "\n"
	writeAll(t, filepath.Join(dir, "go.mod"), []byte(module))
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	writeAll(t, filepath.Join(dir, "go.sum"), sums)
}

func writeAll(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
