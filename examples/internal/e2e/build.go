// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/internal/testenv"
)

// Programs builds commands of this module, each once. The zero value is for a TestMain that ends with [Programs.Main].
type Programs struct {
	dir   string
	mu    sync.Mutex
	built map[string]string
}

// Main runs the tests with what they share, removes the programs that they have built, and returns the code to end with.
func (p *Programs) Main(m interface{ Run() int }, shared *testenv.Shared) int {
	var err error
	if p.dir, err = os.MkdirTemp("", "belay-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	p.built = map[string]string{}
	code := shared.Main(m)
	if err := os.RemoveAll(p.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Path builds the command with that import path, the first time, and gives the program's file name. In make race the
// program looks for data races.
func (p *Programs) Path(t testing.TB, pkg string) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if path, ok := p.built[pkg]; ok {
		return path
	}
	path := filepath.Join(p.dir, fmt.Sprintf("%d-%s", len(p.built), filepath.Base(pkg)))
	build := exec.CommandContext(t.Context(), "go", "build", "-C", home(t), fmt.Sprintf("-race=%t", raceshare.Programs()), "-o", path, pkg)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, out)
	}
	p.built[pkg] = path
	return path
}

// home is the directory of this module: a test of another one builds the commands with what this one needs too.
func home(t testing.TB) string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/belayproject/belay/examples").Output()
	if err != nil {
		t.Fatalf("finding the module: %v", err)
	}
	return strings.TrimSpace(string(dir))
}
