// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/belayproject/belay/checkpoint"
)

// A File that found its content there syncs it once: whoever wrote it may have been killed before its own sync.
func TestWhatWasThereIsSyncedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.conf")
	write(t, open(t, path), "one")
	f := open(t, path)
	var synced []string
	f.sync = func(file *os.File) error { synced = append(synced, file.Name()); return file.Sync() }
	before := inode(t, path)
	write(t, f, "one")
	if want := []string{path, filepath.Dir(path)}; !slices.Equal(synced, want) {
		t.Errorf("synced were %q, want %q", synced, want)
	}
	synced = nil
	write(t, f, "one")
	if len(synced) > 0 || inode(t, path) != before {
		t.Errorf("the second Write synced %q and left inode %d, was %d; want neither a sync nor a new file", synced, inode(t, path), before)
	}
	if err := os.WriteFile(path, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, f, "two")
	if len(synced) == 0 {
		t.Error("what others wrote was believed without a sync")
	}
}

// After a sync that failed, of the file or of the directory, the same bytes are not believed: the next Write makes a
// new file.
func TestAFailedSyncIsNotForgotten(t *testing.T) {
	for _, fails := range []string{"directory", "file that was there"} {
		t.Run(fails, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubelet.conf")
			write(t, open(t, path), "one")
			f, payload, bad := open(t, path), "two", filepath.Dir(path)
			if fails != "directory" {
				payload = "one"
			}
			broken := true
			f.write = func(path string, data []byte, perm fs.FileMode) error {
				switch {
				case !broken:
					return checkpoint.WriteFile(path, data, perm)
				case fails == "directory": // after the rename
					return errors.Join(checkpoint.WriteFile(path, data, perm), syscall.EIO)
				}
				return syscall.EIO
			}
			f.sync = func(file *os.File) error {
				if broken && (file.Name() == bad || fails != "directory") {
					return syscall.EIO
				}
				return file.Sync()
			}
			for range 2 {
				if err := f.Write([]byte(payload)); err == nil {
					t.Fatal("Write is nil though no sync succeeded")
				}
			}
			broken = false
			before := inode(t, path)
			write(t, f, payload)
			if inode(t, path) == before {
				t.Error("the file whose sync failed is still in place")
			}
			after := inode(t, path)
			write(t, f, payload)
			if inode(t, path) != after {
				t.Error("a good file was written again")
			}
		})
	}
}
