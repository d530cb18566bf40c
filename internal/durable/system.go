// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"io/fs"
	"os"
)

// OS is the file system of this machine, by paths.
type OS struct{}

// InRoot is a directory that no name leads out of.
type InRoot struct{ Root *os.Root }

// OpenFile is os.OpenFile that does not follow a link.
func (OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	return wrapFile(os.OpenFile(name, flag|openFlags(flag), perm))
}

// Rename is os.Rename.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove is os.Remove.
func (OS) Remove(name string) error { return os.Remove(name) }

// Lstat is os.Lstat.
func (OS) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// LeadsTo compares the files.
func (OS) LeadsTo(name string, f File) bool { return isFile(os.Lstat, name, f) }

// OpenFile is that of the root.
func (r InRoot) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	return wrapFile(r.Root.OpenFile(name, flag|openFlags(flag), perm))
}

// Rename is that of the root.
func (r InRoot) Rename(from, to string) error { return r.Root.Rename(from, to) }

// Remove is that of the root.
func (r InRoot) Remove(name string) error { return r.Root.Remove(name) }

// Lstat is that of the root.
func (r InRoot) Lstat(name string) (fs.FileInfo, error) { return r.Root.Lstat(name) }

// LeadsTo compares the files.
func (r InRoot) LeadsTo(name string, f File) bool { return isFile(r.Root.Lstat, name, f) }

type systemFile struct{ *os.File }

func wrapFile(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return systemFile{f}, nil
}

func (f systemFile) Lock() error { return lockFile(f.File, lockWait) }

func isFile(lstat func(string) (fs.FileInfo, error), name string, f File) bool {
	there, err := lstat(name)
	if err != nil {
		return false
	}
	open, err := f.(systemFile).Stat()
	return err == nil && os.SameFile(there, open)
}
