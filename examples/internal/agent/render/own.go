// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// A Place is where a config is rendered to.
type Place struct {
	Path    string   // that of the file
	NotOurs []string // files that others write
}

// Open makes the place ready, see [Open].
func (p Place) Open() (*File, error) { return Open(p.Path, p.NotOurs...) }

// Check returns an error if path is one of the files that others write, by its name or through links, on the way to
// it or at its end. Whoever renders there would lose what the other one writes, and the other way round. What is not
// there yet is told by its name.
func Check(path string, others ...string) error {
	for _, other := range others {
		if other != "" && same(path, other) {
			return fmt.Errorf("it is %q, which is not the agent's to write", other)
		}
	}
	return nil
}

func same(a, b string) bool {
	if resolved(a) == resolved(b) {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && !x.IsDir() && os.SameFile(x, y)
}

// resolved is path without links, as far as it exists.
func resolved(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(resolved(dir), filepath.Base(path))
}

// Remove takes the file away, durably on nil. One that isn't there is as good. After an error the file is what it was
// before, or is gone and may come back with the power.
func (f *File) Remove() error {
	err := errors.Join(f.removeTemp(), f.remove())
	if err != nil {
		return fmt.Errorf("taking %q away: %w", f.path, err)
	}
	f.durable = nil
	return nil
}

// remove syncs the directory also where nothing is there: a process before this one may have been killed ahead of its
// sync.
func (f *File) remove() error {
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.syncPath(filepath.Dir(f.path)); err != nil && !errors.Is(err, syscall.EROFS) {
		return err
	}
	return nil
}
