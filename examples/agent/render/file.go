// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// mode lets nobody but the owner read the config.
const mode fs.FileMode = 0o600

// A File is the place that the child reads its config from. Make it with [Open].
type File struct{ path, temp string }

// Open makes path ready to be written: its directory exists, durably, and no leftover of a killed run lies there. The file
// itself is left alone. The error says what at path can't be replaced.
func Open(path string) (*File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("rendering to %q: %w", path, err)
	}
	f := &File{path: path, temp: filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".belay-tmp")}
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("rendering to %q: %w", path, err)
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("rendering to %q: it is a directory; name a file", path)
	}
	if err := f.removeTemp(); err != nil {
		return nil, fmt.Errorf("rendering to %q: %w", path, err)
	}
	return f, nil
}

// Path is absolute.
func (f *File) Path() string { return f.path }

// Write makes payload the content of the file, durably on nil. Where the file has that content already, nothing is written.
// After an error the file is what it was before, or holds the payload and may be lost with the power.
func (f *File) Write(payload []byte) error {
	if f.holds(payload) {
		return nil
	}
	if err := f.replace(payload); err != nil {
		return errors.Join(fmt.Errorf("rendering to %q: %w", f.path, err), f.removeTemp())
	}
	return nil
}

// holds reports whether the file is as Write would leave it. What can't be read is written again.
func (f *File) holds(payload []byte) bool {
	info, err := os.Lstat(f.path)
	if err != nil || info.Mode() != mode || info.Size() != int64(len(payload)) {
		return false
	}
	got, err := os.ReadFile(f.path)
	return err == nil && bytes.Equal(got, payload)
}

// replace writes the sibling, then renames it, then makes both durable. A sibling whose sync failed is never used again.
func (f *File) replace(payload []byte) error {
	if err := f.removeTemp(); err != nil {
		return err
	}
	t, err := os.OpenFile(f.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = t.Write(payload)
	if err == nil {
		err = t.Sync()
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.temp, f.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(f.path))
}

// removeTemp leaves a sibling on a read-only disk alone: nobody can write there, and the file itself may be the right one.
func (f *File) removeTemp() error {
	err := os.Remove(f.temp)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	return nil
}

// makeDir makes dir and what is missing above it, each entry durable in its parent.
func makeDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%q is not a directory", dir)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeDir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
