// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
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

// Main runs the tests with what they share, removes the programs that they have built, and returns the code to end
// with.
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
	if err := build(t.Context(), pkg, path); err != nil {
		t.Fatal(err)
	}
	p.built[pkg] = path
	return path
}

// Build builds commands of this module and of those that it requires into a directory, where each has the last part
// of its import path as its name.
func Build(ctx context.Context, dir string, pkgs ...string) error {
	for _, pkg := range pkgs {
		if err := build(ctx, pkg, filepath.Join(dir, filepath.Base(pkg))); err != nil {
			return err
		}
	}
	return nil
}

// build builds a command and copies it, for a test to do with it what it likes. The command is built in the user's
// cache, so that the packages of a run of the tests, and the runs after it, link again only what has changed. Each
// work tree has its own programs there.
func build(ctx context.Context, pkg, to string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("building %s: %w", pkg, err)
		}
	}()
	home, err := home(ctx)
	if err != nil {
		return err
	}
	dir, unlock, err := lockPrograms(home)
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(dir, filepath.Base(pkg))
	race := fmt.Sprintf("-race=%t", raceshare.RacePrograms())
	cmd := exec.CommandContext(ctx, "go", "build", "-C", home, race, "-o", path, pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755) //nolint:gosec // a program
}

// lockPrograms waits until no other process builds programs of the module in home, and returns the directory for them.
func lockPrograms(home string) (dir string, unlock func(), err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", nil, err
	}
	kind := sha256.Sum256(fmt.Appendf(nil, "%s %t", home, raceshare.RacePrograms()))
	dir = filepath.Join(cache, "belay-test-programs", hex.EncodeToString(kind[:8]))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", nil, errors.Join(err, lock.Close())
	}
	return dir, func() { _ = lock.Close() }, nil
}

// home is the directory of this module: a test of another one builds the commands with what this one needs too.
func home(ctx context.Context) (string, error) {
	const module = "github.com/belayproject/belay/examples"
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	return strings.TrimSpace(string(dir)), nil
}
