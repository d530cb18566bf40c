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

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/internal/durable"
)

// mode lets nobody but the owner read the config.
const mode fs.FileMode = 0o600

// A File is the place that the child reads its config from. Make it with [Open].
type File struct {
	path, temp string
	write      writer
	sync       func(*os.File) error // (*os.File).Sync, except in tests
	durable    fs.FileInfo          // the file that this process knows to be durable; nil: none yet
	doubtful   bool                 // a sync failed: what was written then may be lost, whatever a later sync says
}

// writer is checkpoint.WriteFile, except in tests.
type writer func(path string, payload []byte, perm fs.FileMode) error

// Open makes path ready to be written: its directory exists, durably, and no leftover of a killed run lies there. The
// file itself is left alone. The error says what at path can't be replaced. Files that others write are never a place
// to render to: see [Check].
func Open(path string, others ...string) (*File, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		err = Check(path, others...)
	}
	if err != nil {
		return nil, fmt.Errorf("rendering to %q: %w", path, err)
	}
	temp := filepath.Join(filepath.Dir(path), durable.TempName(filepath.Base(path)))
	f := &File{path: path, temp: temp, write: checkpoint.WriteFile, sync: (*os.File).Sync}
	if err := f.makeDir(filepath.Dir(path)); err != nil {
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

// Write makes payload the content of the file, durably on nil. Where the file has that content already, it is synced
// once, as a process before this one may have been killed ahead of its sync, and written anew only where a sync
// failed. A read-only disk that holds the payload is as good: nothing on it changes. After an error the file is what
// it was before, or holds the payload and may be lost with the power.
func (f *File) Write(payload []byte) error {
	if f.holds(payload) {
		if f.settled() || !f.doubtful && f.settle() {
			return nil
		}
	}
	if err := f.replacePayload(payload); err != nil {
		return fmt.Errorf("rendering to %q: %w", f.path, err)
	}
	f.doubtful = false
	f.durable, _ = os.Lstat(f.path) // without it, the next Write syncs once more
	return nil
}

// settled reports whether the file is still the one that is known to be durable.
func (f *File) settled() bool {
	now, err := os.Lstat(f.path)
	return err == nil && f.durable != nil && os.SameFile(now, f.durable) && now.ModTime().Equal(f.durable.ModTime())
}

// settle makes a file durable that this process didn't write. After a failure it must be another file: the kernel may
// have dropped what it could not write.
func (f *File) settle() bool {
	info, err := os.Lstat(f.path)
	if err == nil {
		err = errors.Join(f.syncPath(f.path), f.syncPath(filepath.Dir(f.path)))
	}
	if err != nil && !errors.Is(err, syscall.EROFS) {
		return false
	}
	f.durable = info
	return true
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

// replacePayload writes another file, and remembers a failure until one is in place: what a sync failed to confirm is
// never believed.
func (f *File) replacePayload(payload []byte) error {
	if err := f.write(f.path, payload, mode); err != nil {
		f.doubtful = true
		return err
	}
	return nil
}

// olderTempEnd ends the name of the temporary sibling that agents before checkpoint.WriteFile made.
const olderTempEnd = ".belay-tmp"

// removeTemp removes the temporary sibling, and that of an agent before an upgrade. On a read-only disk it leaves them
// alone: the file itself may be the right one.
func (f *File) removeTemp() error {
	older := filepath.Join(filepath.Dir(f.path), "."+filepath.Base(f.path)+olderTempEnd)
	for _, temp := range []string{f.temp, older} {
		err := os.Remove(temp)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EROFS) {
			return err
		}
	}
	return nil
}

// makeDir makes dir and what is missing above it, each entry durable in its parent, also that of the deepest one that
// was there: a process that made it may have been killed ahead of its sync. A parent that may not be read was not
// made by the agent.
func (f *File) makeDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%q is not a directory", dir)
	case err == nil:
		err = f.syncPath(filepath.Dir(dir))
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			return nil
		}
		return err
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := f.makeDir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return f.syncPath(filepath.Dir(dir))
}

// syncPath syncs a file or a directory.
func (f *File) syncPath(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.synced(d), d.Close())
}

// synced syncs, and remembers a failure until a new file is in place.
func (f *File) synced(file *os.File) error {
	err := f.sync(file)
	if err != nil && !errors.Is(err, syscall.EROFS) {
		f.doubtful = true
	}
	return err
}
