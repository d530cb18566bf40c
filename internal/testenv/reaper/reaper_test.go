// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package reaper_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testenv/binaries"
	"github.com/belayproject/belay/internal/testenv/reaper"
	"github.com/belayproject/belay/internal/tier"
)

func newReaper(t *testing.T) *reaper.Reaper {
	t.Helper()
	set, err := binaries.Ensure(t.Context(), os.Stderr, binaries.Reaper)
	if err != nil {
		t.Fatal(err)
	}
	r, err := reaper.New(set[binaries.Reaper])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestCloseRemovesProcessesAndFiles(t *testing.T) {
	r := newReaper(t)
	if err := os.MkdirAll(filepath.Join(r.Dir(), "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "600")
	r.Mark(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for range 2 {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-done:
		if err == nil {
			t.Error("the process ended by itself, want it killed")
		}
	case <-time.After(10 * time.Second):
		_ = cmd.Process.Kill()
		t.Error("the process runs after Close, want it killed")
	}
	if _, err := os.Stat(r.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there (%v)", err)
	}
}

// TestCloseDoesNotReachThroughMounts shows that what the owner had mounted survives the removal of the directory.
func TestCloseDoesNotReachThroughMounts(t *testing.T) {
	tier.System(t, tier.Root, tier.Mount)
	r := newReaper(t)
	precious := t.TempDir()
	file := filepath.Join(precious, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	point := filepath.Join(r.Dir(), "with blank", "point")
	if err := os.MkdirAll(point, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--bind", precious, point}, {"-t", "tmpfs", "none", filepath.Dir(point)}} {
		if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
			t.Skipf("this machine does not let root mount: %v: %s", err, out)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("a file beneath a mount point was removed: %v", err)
	}
	if _, err := os.Stat(r.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there (%v)", err)
	}
}

func TestMarkReplacesAnOuterMark(t *testing.T) {
	r := newReaper(t)
	cmd := exec.Command("sh", "-c", `printf %s "$BELAY_REAP"`)
	cmd.Env = append(os.Environ(), "BELAY_REAP=ffffffffffffffff")
	r.Mark(cmd)
	out, err := cmd.Output()
	if err != nil || string(out) != r.ID() {
		t.Errorf("the process carries the mark %q (%v), want %q", out, err, r.ID())
	}
}
