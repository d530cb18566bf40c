// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLeftoversOfAKilledProverAreRemoved: R-CS-41. A directory with a config in it does not outlive the process that
// made it by more than one judgement, whatever process ID it has in its name. What is in use stays, and what is not of
// a prover.
func TestLeftoversOfAKilledProverAreRemoved(t *testing.T) {
	s, temporary := newStage(t), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	const left, used, other = 1, 2, 3
	dirs := map[string]int{
		filepath.Join(s.options.Dir, fmt.Sprintf("validate-%d-17", os.Getpid())): left,
		filepath.Join(s.options.Dir, fmt.Sprintf("validate-%d-18", os.Getpid())): used,
		filepath.Join(s.options.Dir, "validate-1-17"):                            left,
		filepath.Join(s.options.Dir, "validate-1-x"):                             other,
		filepath.Join(temporary, "belay-kubelet-1-18"):                           used,
		filepath.Join(temporary, "belay-kubelet-20260101-logs"):                  other,
	}
	if canIsolate() == nil {
		dirs[filepath.Join(temporary, "belay-kubelet-1-17")] = left
	}
	for dir, what := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if what != used {
			continue
		}
		lock, err := lockDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lock.Close() })
	}
	for _, name := range []string{"validate-1-19", "validate-1-20"} {
		path, create := filepath.Join(s.options.Dir, name), func(path string) error { return unix.Mkfifo(path, 0o600) }
		if name == "validate-1-20" {
			create = func(path string) error { return os.Symlink(temporary, path) }
		}
		if err := create(path); err != nil {
			t.Fatal(err)
		}
		dirs[path] = other
	}
	if err := s.prover().Inspect(t.Context(), Key, object("u", head+"maxPods: 7\n", nil)); err != nil {
		t.Fatal(err)
	}
	for dir, what := range dirs {
		if _, err := os.Lstat(dir); (err != nil) != (what == left) {
			t.Errorf("%s: %v, want it removed: %t", dir, err, what == left)
		}
	}
}
