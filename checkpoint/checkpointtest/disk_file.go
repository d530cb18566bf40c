// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest

import (
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// File is an open file or directory of a [Disk], with the methods of [os.File].
type File struct {
	d      *Disk
	n      *node
	name   string
	flag   int
	pos    int64
	closed bool
}

// Name returns the name that the file was opened by.
func (f *File) Name() string { return f.name }

// do is one call on the file.
func (f *File) do(op string, call func() error) error {
	return f.d.do(op, f.name, func() error {
		if f.closed {
			return fs.ErrClosed
		}
		return call()
	})
}

// Read reads on from where the last Read or Write ended.
func (f *File) Read(p []byte) (n int, err error) {
	err = f.do("read", func() error {
		n, err = f.read(p, f.pos)
		f.pos += int64(n)
		return err
	})
	return n, eof(n, len(p), err)
}

// ReadAt reads from an offset.
func (f *File) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.do("read", func() error { n, err = f.read(p, off); return err })
	if err == nil && n < len(p) {
		return n, io.EOF
	}
	return n, err
}

func eof(n, want int, err error) error {
	if err == nil && n == 0 && want > 0 {
		return io.EOF
	}
	return err
}

func (f *File) read(p []byte, off int64) (int, error) {
	if f.n.dir {
		return 0, syscall.EISDIR
	}
	if off >= int64(len(f.n.data)) {
		return 0, nil
	}
	return copy(p, f.n.data[off:]), nil
}

// Write writes where the last Read or Write ended or, with os.O_APPEND, at the end.
func (f *File) Write(p []byte) (int, error) {
	if f.flag&os.O_APPEND != 0 {
		f.d.mu.Lock()
		f.pos = int64(len(f.n.data))
		f.d.mu.Unlock()
	}
	n, err := f.WriteAt(p, f.pos)
	f.pos += int64(n)
	return n, err
}

// WriteAt writes at an offset. Like every change of content it is durable after Sync.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	n := 0
	err := f.do("write", func() error {
		if f.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
			return syscall.EBADF
		}
		n = len(p)
		cut, err := f.d.cut(n)
		n = cut
		f.d.write(f.n, p[:n], off)
		return err
	})
	return n, err
}

// Truncate changes the size. What comes up is zero.
func (f *File) Truncate(size int64) error {
	return f.do("truncate", func() error {
		if f.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
			return syscall.EINVAL
		}
		f.d.resize(f.n, size)
		return nil
	})
}

// Sync makes the content of a file durable, and of a directory the names in it. When it fails, what it should have made durable
// never will be, and a later Sync succeeds all the same: that is what Linux does.
func (f *File) Sync() error {
	err := f.do("sync", func() error {
		f.d.record(event{kind: evSync, n: f.n})
		return nil
	})
	if err != nil && !f.closed {
		f.d.mu.Lock()
		defer f.d.mu.Unlock()
		f.d.record(event{kind: evLost, n: f.n})
	}
	return err
}

// Stat is that of the [Disk].
func (f *File) Stat() (fs.FileInfo, error) {
	var i fs.FileInfo
	err := f.do("stat", func() error { i = infoOf(f.name, f.n); return nil })
	return i, err
}

// Chmod is that of the [Disk].
func (f *File) Chmod(perm fs.FileMode) error {
	return f.do("chmod", func() error { f.d.chmod(f.n, perm); return nil })
}

// Close makes nothing durable. Where it fails, the file is closed all the same.
func (f *File) Close() error {
	err := f.do("close", func() error { return nil })
	f.closed = true
	return err
}

// info is what Stat gives.
type info struct {
	name string
	size int64
	mode fs.FileMode
	id   uint64
}

func infoOf(name string, n *node) info {
	i := info{name: name, size: int64(len(n.data)), mode: n.mode, id: n.id}
	if n.dir {
		i.mode |= fs.ModeDir
	}
	return i
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return i.id }
