// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestLeftoversOfAKilledProverAreRemoved: R-CS-41. A directory with a config in it does not outlive the process that
// made it by more than one judgement. That of a process that lives stays.
func TestLeftoversOfAKilledProverAreRemoved(t *testing.T) {
	s, temporary := newStage(t), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dead, live := ended.Process.Pid, os.Getppid()
	dirs := map[string]bool{ // whether it stays
		filepath.Join(s.options.Dir, fmt.Sprintf("validate-%d-1", dead)):  false,
		filepath.Join(s.options.Dir, fmt.Sprintf("validate-%d-1", live)):  true,
		filepath.Join(temporary, fmt.Sprintf("belay-kubelet-%d-1", dead)): canIsolate() != nil,
		filepath.Join(temporary, fmt.Sprintf("belay-kubelet-%d-1", live)): true,
	}
	for dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.prover().Inspect(t.Context(), Key, object("u", head+"maxPods: 7\n", nil)); err != nil {
		t.Fatal(err)
	}
	for dir, stays := range dirs {
		if _, err := os.Stat(dir); (err == nil) != stays {
			t.Errorf("%s: %v, want that it stays: %t", dir, err, stays)
		}
	}
}
