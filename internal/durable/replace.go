// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrUnconfirmed says that a file was replaced, and that the disk did not confirm it.
var ErrUnconfirmed = errors.New("the new name of the file was not confirmed")

// FS is where a file is replaced: [OS], [InRoot], or a disk in memory. Names are those of
// [FS.OpenFile].
type FS interface {
	// OpenFile does not wait where a pipe is at name, and follows no link where it makes a file.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Rename(from, to string) error
	Remove(name string) error
	Lstat(name string) (fs.FileInfo, error)
	// LeadsTo reports whether name is the open file.
	LeadsTo(name string, f File) bool
}

// File is what [ReplaceFile] needs of an open file or directory.
type File interface {
	Write(p []byte) (int, error)
	Chmod(mode fs.FileMode) error
	Sync() error
	// Lock waits until no other process has the file locked, for a bounded time. The lock ends with
	// the file.
	Lock() error
	Close() error
}

// tries bounds how often the temporary file may be in the way.
const tries = 1000

// lockWait bounds how long a writer waits for other ones: one that was stopped holds its lock for
// ever. It is longer than any fsync of a disk that works.
const lockWait = 30 * time.Second

// ReplaceFile makes data the content of a file with a mode, whatever the umask. A link at name is
// replaced, not followed. If another process holds the temporary file for 30 seconds, the error names
// that file.
func ReplaceFile(fsys FS, name string, data []byte, mode fs.FileMode) error {
	temp := filepath.Join(filepath.Dir(name), TempName(filepath.Base(name)))
	f, err := createTemp(fsys, temp)
	if err != nil {
		return err
	}
	err = fillFile(f, data, mode)
	if err == nil {
		if err = fsys.Rename(temp, name); err == nil {
			// From here on the temporary name is free for others.
			return errors.Join(confirmDir(fsys, filepath.Dir(name)), dropError(f.Close()))
		}
	}
	// A file whose fsync failed is never used again: the system says it once.
	_ = fsys.Remove(temp)
	return errors.Join(err, dropError(f.Close()))
}

// dropError is for the end of a file that is durable, or gone.
func dropError(error) error { return nil }

func fillFile(f File, data []byte, mode fs.FileMode) error {
	err := f.Chmod(mode)
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

func confirmDir(fsys FS, dir string) error {
	if err := SyncDir(fsys, dir); err != nil {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	}
	return nil
}

// createTemp makes the temporary file, locked. One that is there belongs to another writer, which is
// waited for, or was left by a killed one.
func createTemp(fsys FS, temp string) (File, error) {
	until := time.Now().Add(lockWait)
	for try := 0; try < tries && (try == 0 || time.Now().Before(until)); try++ {
		f, err := fsys.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			if err := removeLeftover(fsys, temp); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := f.Lock(); err != nil {
			_ = fsys.Remove(temp)
			return nil, errors.Join(err, f.Close())
		}
		if fsys.LeadsTo(temp, f) {
			return f, nil
		}
		if err := f.Close(); err != nil { // another writer took it for a leftover before it was locked
			return nil, err
		}
	}
	return nil, fmt.Errorf("the temporary file %q of other writers was in the way for too long", temp)
}

// removeLeftover waits for the writer of a temporary file, and removes one that was left.
func removeLeftover(fsys FS, temp string) error {
	info, err := fsys.Lstat(temp)
	if err == nil && !info.Mode().IsRegular() {
		return ignoreGone(fsys.Remove(temp)) // no writer made it
	}
	var f File
	if err == nil {
		f, err = fsys.OpenFile(temp, os.O_RDONLY, 0)
	}
	if err != nil {
		return ignoreGone(err)
	}
	err = f.Lock()
	if err == nil && fsys.LeadsTo(temp, f) {
		err = ignoreGone(fsys.Remove(temp))
	}
	return errors.Join(err, dropError(f.Close()))
}

// Remove removes a file, durably. One that is not there is no error.
func Remove(fsys FS, name string) error {
	if err := ignoreGone(fsys.Remove(name)); err != nil {
		return err
	}
	return confirmDir(fsys, filepath.Dir(name))
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// SyncDir makes the names in a directory durable.
func SyncDir(fsys FS, dir string) error {
	d, err := fsys.OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), dropError(d.Close()))
}

const (
	tempMark = ".belay-"
	tempEnd  = ".tmp"
)

// TempName is the name of the temporary file beside a file.
func TempName(base string) string {
	const room = 200
	sum := sha256.Sum256([]byte(base))
	return "." + base[:min(len(base), room)] + tempMark + hex.EncodeToString(sum[:4]) + tempEnd
}

// IsTemp reports whether a name is one that [TempName] makes.
func IsTemp(name string) bool {
	return strings.HasPrefix(name, ".") && strings.Contains(name, tempMark) && strings.HasSuffix(name, tempEnd)
}
