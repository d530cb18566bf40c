// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	root       = "../../.."
	maxProgram = 100 // lines of a small program
	maxOwnMain = 40  // lines of a main over an app
)

// A program is a folder that is copied, the most lines of its main.go, and how the copy is run: without arguments it is built alone.
type program struct {
	name, from string
	lines      int
	args       []string
	code       int
	says       string
}

func programs(dir string) []program {
	own, small := "testdata/", "../../small/"
	return []program{
		{"checkpoint", small, maxProgram, []string{filepath.Join(dir, "records")}, 0, "run 1"},
		{"config", small, maxProgram, []string{filepath.Join(dir, "state"), filepath.Join(dir, "absent")}, -1, ""},
		{"drain", small, maxProgram, []string{}, 2, "usage: drain NODE"},
		{"leader", small, maxProgram, nil, 0, ""},
		{"rollout", small, maxProgram, nil, 0, ""},
		{"ownagent", own, maxOwnMain, []string{"check", filepath.Join(dir, "kubelet.yaml")}, 1, "maxPods must be at most 110"},
		{"owncontroller", own, maxOwnMain, []string{"--machine-provider=mycloud"}, 1, `--cluster="": must name this cluster`},
		{"owndrain", own, maxOwnMain, []string{"--kubeconfig=/absent", "node-1"}, 1, "reading the kubeconfig"},
		{"ownkubectl", own, maxOwnMain, []string{"where", "--kubeconfig=/absent"}, 1, "reading the kubeconfig"},
	}
}

// The copies build in a module of their own. replace directives stand for the released modules.
func TestCopiesBuildOutside(t *testing.T) {
	dir := t.TempDir()
	for _, p := range programs(dir) {
		copyProgram(t, p, filepath.Join(dir, p.name))
	}
	writeModule(t, dir)
	write(t, filepath.Join(dir, "kubelet.yaml"), "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 200\n")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "bin/", "./...")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the copies: %v\n%s", err, out)
	}
	for _, p := range programs(dir) {
		if p.args != nil && p.code >= 0 {
			runCopy(t, p, filepath.Join(dir, "bin", p.name))
		}
	}
}

func copyProgram(t *testing.T, p program, to string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.from, p.name, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no files (%v)", p.name, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text := read(t, file)
		if n := strings.Count(text, "\n"); n > p.lines {
			t.Errorf("%s has %d lines, want %d at most", file, n, p.lines)
		}
		write(t, filepath.Join(to, filepath.Base(file)), text)
	}
}

// writeModule writes the go.mod of a user: that of examples with another name, and examples itself among what it requires.
func writeModule(t *testing.T, dir string) {
	t.Helper()
	at, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/belayproject/belay/examples"
	text := strings.Replace(read(t, root+"/examples/go.mod"), "module "+module, "module example.com/copies", 1)
	text = regexp.MustCompile(`=> \.\./?`).ReplaceAllString(text, "=> "+at+"/")
	text += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %s => %s/examples\n", module, module, at)
	write(t, filepath.Join(dir, "go.mod"), text)
	write(t, filepath.Join(dir, "go.sum"), read(t, root+"/examples/go.sum"))
}

func runCopy(t *testing.T, p program, binary string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, p.args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // the code tells
	if code := cmd.ProcessState.ExitCode(); code != p.code || !strings.Contains(out.String(), p.says) {
		t.Errorf("%s %q exits with %d and says %q, want %d and %q", p.name, p.args, code, out.String(), p.code, p.says)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
