// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/tier"
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

// TestLiveDirectoriesAreNotTakenForLeftovers: R-CS-41. Judgements in several processes, also of several PID namespaces,
// do not remove each other's directories and cgroups, at no moment between their making and their removal.
func TestLiveDirectoriesAreNotTakenForLeftovers(t *testing.T) {
	in := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				dir, remove, err := makeLocked(in, sandboxPrefix)
				if err != nil {
					t.Errorf("making a directory beside others: %v", err)
					return
				}
				removeLeftovers(in, sandboxPrefix, os.RemoveAll)
				if _, err := os.Stat(dir); err != nil {
					t.Errorf("a directory in use was removed: %v", err)
				}
				if err := remove(); err != nil {
					t.Errorf("removing it: %v", err)
				}
			}
		})
	}
	all.Wait()
}

// TestADirectoryThatAnotherProcessHoldsIsGivenUp: R-CS-41. A judgement waits for no other process, which may be frozen.
func TestADirectoryThatAnotherProcessHoldsIsGivenUp(t *testing.T) {
	in, tries := t.TempDir(), 0
	dir, lock, err := makeAndLock(func() (string, error) {
		tries++
		dir := filepath.Join(in, strconv.Itoa(tries))
		if err := os.Mkdir(dir, 0o700); err != nil || tries > 1 {
			return dir, err
		}
		held, err := lockDir(dir)
		t.Cleanup(func() { _ = held.Close() })
		return dir, err
	})
	if err != nil || tries != 2 {
		t.Fatalf("%q after %d directories, %v; want the second", dir, tries, err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

// TestAHierarchyMayBeMountedTwice: R-CS-41.
func TestAHierarchyMayBeMountedTwice(t *testing.T) {
	first, second := t.TempDir(), filepath.Join(t.TempDir(), "again")
	if err := os.Symlink(first, second); err != nil {
		t.Fatal(err)
	}
	s := &sandbox{dir: "/tmp/" + sandboxPrefix + "1-17"}
	for _, h := range []string{first, second} {
		dir, err := s.makeTopCgroup(h)
		if err != nil {
			t.Fatal(err)
		}
		s.cgroups = append(s.cgroups, dir)
	}
	if err := s.removeCgroups(); err != nil {
		t.Error(err)
	}
}

// TestLiveCgroupsAreNotTakenForLeftovers: R-CS-41. A judgement leaves the cgroups of another alone, whose process ID it
// does not know, and removes those of a killed one, whose process ID another process has.
func TestLiveCgroupsAreNotTakenForLeftovers(t *testing.T) {
	tier.System(t, tier.Root)
	used := &sandbox{dir: fmt.Sprintf("%s%d-17", sandboxPrefix, unknownPID)}
	killed := &sandbox{dir: fmt.Sprintf("%s%d-18", sandboxPrefix, os.Getpid())}
	own := &sandbox{dir: fmt.Sprintf("%s%d-19", sandboxPrefix, os.Getpid())}
	for _, s := range []*sandbox{used, killed, own} {
		if s == own {
			for _, lock := range killed.locks {
				_ = lock.Close()
			}
		}
		if err := s.makeCgroups(); err != nil {
			t.Fatal(err)
		}
	}
	for s, stays := range map[*sandbox]bool{used: true, killed: false, own: true} {
		for _, dir := range s.cgroups {
			if _, err := os.Stat(dir); (err == nil) != stays {
				t.Errorf("%s: %v, want that it stays: %t", dir, err, stays)
			}
		}
	}
	for _, s := range []*sandbox{used, own} {
		if err := s.removeCgroups(); err != nil {
			t.Error(err)
		}
	}
}

// unknownPID is a process ID that is hardly ever given: the highest.
const unknownPID = 1<<22 - 1
