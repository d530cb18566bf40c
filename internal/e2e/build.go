// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Programs builds commands of this module, each once. Make it in TestMain with [NewPrograms].
type Programs struct {
	dir   string
	mu    sync.Mutex
	built map[string]string
}

// NewPrograms makes the directory that the programs go to.
func NewPrograms() (*Programs, error) {
	dir, err := os.MkdirTemp("", "belay-e2e-")
	if err != nil {
		return nil, err
	}
	return &Programs{dir: dir, built: map[string]string{}}, nil
}

// Remove removes the programs.
func (p *Programs) Remove() error { return os.RemoveAll(p.dir) }

// Path builds the command with that import path, the first time, and gives the program's file name. Where the test binary looks
// for data races, so does the program.
func (p *Programs) Path(t testing.TB, pkg string) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if path, ok := p.built[pkg]; ok {
		return path
	}
	path := filepath.Join(p.dir, fmt.Sprintf("%d-%s", len(p.built), filepath.Base(pkg)))
	build := exec.CommandContext(t.Context(), "go", "build", fmt.Sprintf("-race=%t", race), "-o", path, pkg)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, out)
	}
	p.built[pkg] = path
	return path
}

// FreePort gives a TCP port of 127.0.0.1 that nothing listens on at the moment.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
