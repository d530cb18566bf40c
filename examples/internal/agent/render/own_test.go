// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// L-CS-38: a file of kubeadm's is refused, under its name, through links and as a link, there or not, and is not
// touched.
func TestFilesOfOthersAreRefused(t *testing.T) {
	dir := t.TempDir()
	theirs := filepath.Join(dir, "kubelet", "config.yaml")
	must(t, os.Mkdir(filepath.Dir(theirs), 0o700))
	must(t, os.Symlink(filepath.Dir(theirs), filepath.Join(dir, "link")))
	for _, there := range []bool{false, true} {
		paths := []string{theirs, filepath.Join(dir, "kubelet", "..", "kubelet", "config.yaml"), filepath.Join(dir, "link", "config.yaml")}
		if there {
			must(t, os.WriteFile(theirs, []byte("of kubeadm"), 0o644))
			must(t, os.Symlink(theirs, filepath.Join(dir, "90-belay.conf")))
			must(t, os.Link(theirs, filepath.Join(dir, "hard.conf")))
			paths = append(paths, filepath.Join(dir, "90-belay.conf"), filepath.Join(dir, "hard.conf"))
		}
		for _, path := range paths {
			if _, err := Open(path, "/absent/config.yaml", theirs); err == nil || !strings.Contains(err.Error(), "not the agent's to write") {
				t.Errorf("there %t: Open(%q) = %v, want a refusal", there, path, err)
			}
		}
	}
	if got, err := os.ReadFile(theirs); err != nil || string(got) != "of kubeadm" {
		t.Errorf("the file holds %q (%v), want it untouched", got, err)
	}
	f, err := Open(filepath.Join(dir, "link", "mine.conf"), "", theirs)
	must(t, err)
	must(t, f.Write([]byte("one")))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// L-CS-39: a drop-in that is left is gone, durably, also where the process that took it away was killed ahead of its
// sync.
func TestRemove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "90-belay.conf")
	f := open(t, path)
	write(t, f, "one")
	var synced []string
	f.sync = func(file *os.File) error { synced = append(synced, file.Name()); return file.Sync() }
	for range 2 {
		synced = nil
		must(t, os.WriteFile(f.temp, []byte("half"), 0o600))
		must(t, f.Remove())
		if names := entries(t, filepath.Dir(path)); len(names) != 0 {
			t.Errorf("after Remove the directory holds %q, want nothing", names)
		}
		if len(synced) != 1 || synced[0] != filepath.Dir(path) {
			t.Errorf("synced were %q, want the directory", synced)
		}
	}
	write(t, f, "one")
	must(t, os.Remove(path))
	must(t, os.Mkdir(path, 0o700))
	must(t, os.WriteFile(filepath.Join(path, "theirs"), nil, 0o600))
	if err := f.Remove(); err == nil {
		t.Error("Remove of what can't be taken away is nil")
	}
}
