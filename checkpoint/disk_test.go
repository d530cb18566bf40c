// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"
)

// What follows has a Store run on a checkpointtest.Disk. The seam stays inside the package: a public one would bind
// every later change of the protocol. Package checkpointtest imports this one, so it is met by its methods.

type diskFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
	Chmod(fs.FileMode) error
}

type disk[F diskFile] interface {
	OpenFile(name string, flag int, perm fs.FileMode) (F, error)
	Mkdir(name string, perm fs.FileMode) error
	Rename(from, to string) error
	RenameNew(from, to string) error
	Remove(name string) error
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	Chmod(name string, perm fs.FileMode) error
}

// OnDisk is how a Store uses a disk in memory.
type OnDisk struct {
	Room   int64             // what is free, in bytes
	Before func(call string) // called before each call that changes something, and after each sync, if set
}

// OpenOnDisk is Open on a disk in memory.
func OpenOnDisk[F diskFile](d disk[F], how OnDisk, dir string, o Options) (*Store, error) {
	return startOnDisk(&diskFS[F]{d: d, OnDisk: how, open: map[int]*opened[F]{}}, dir, o)
}

// startOnDisk is openOn without a pause between two tries.
func startOnDisk(sys fsys, dir string, o Options) (*Store, error) {
	s, err := newStore(sys, dir, o)
	if err != nil {
		return nil, err
	}
	s.writer.pause = func(context.Context, int) error { return nil }
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	return s, nil
}

// diskFS is a disk with descriptors.
type diskFS[F diskFile] struct {
	OnDisk
	d    disk[F]
	mu   sync.Mutex
	next int
	open map[int]*opened[F]
}

type opened[F diskFile] struct {
	file F
	name string
}

func (f *diskFS[F]) at(fd int) *opened[F] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.open[fd]; o != nil {
		return o
	}
	panic(fmt.Sprintf("descriptor %d is not open", fd))
}

func (f *diskFS[F]) in(dir int, name string) string { return path.Join(f.at(dir).name, name) }

func (f *diskFS[F]) before(op, name string) {
	if f.Before != nil {
		f.Before(op + " " + name)
	}
}

func (f *diskFS[F]) openFile(name string, flag int) (int, error) {
	file, err := f.d.OpenFile(name, flag, permFile)
	if err != nil {
		return -1, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	f.open[f.next] = &opened[F]{file, name}
	return f.next, nil
}

func (f *diskFS[F]) openAt(dir int, name string, how openHow) (int, error) {
	name = f.in(dir, name)
	switch how {
	case openNew:
		f.before("create", name)
		return f.openFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	case openLock:
		return f.openFile(name, os.O_RDONLY|os.O_CREATE)
	case openWrite:
		return f.openFile(name, os.O_WRONLY)
	case openDir:
		return f.openPath(name)
	default:
		return f.openFile(name, os.O_RDONLY)
	}
}

func (f *diskFS[F]) openPath(name string) (int, error) {
	if info, err := f.d.Stat(name); err == nil && !info.IsDir() {
		return -1, unix.ENOTDIR
	}
	return f.openFile(name, os.O_RDONLY)
}

func (f *diskFS[F]) close(fd int) error {
	o := f.at(fd)
	f.mu.Lock()
	delete(f.open, fd)
	f.mu.Unlock()
	return o.file.Close()
}

func infoOnDisk(i fs.FileInfo, err error) (fileInfo, error) {
	if err != nil {
		return fileInfo{}, err
	}
	return fileInfo{
		id: fileID{1, i.Sys().(uint64)}, size: i.Size(), links: 1, uid: uint32(os.Geteuid()), gid: uint32(os.Getegid()),
		perm:    uint32(i.Mode().Perm()),
		regular: i.Mode().IsRegular(), dir: i.IsDir(),
	}, nil
}

func (f *diskFS[F]) stat(fd int) (fileInfo, error) { return infoOnDisk(f.at(fd).file.Stat()) }

func (f *diskFS[F]) statAt(dir int, name string) (fileInfo, error) {
	return infoOnDisk(f.d.Stat(f.in(dir, name)))
}

func (f *diskFS[F]) statPath(name string) (fileInfo, error) { return infoOnDisk(f.d.Stat(name)) }

func (f *diskFS[F]) resolve(name string) (string, error) { return name, nil }
func (f *diskFS[F]) kindOf(int) (storage, error)         { return storageDurable, nil }
func (f *diskFS[F]) room(int) (int64, error)             { return f.Room, nil }

func (f *diskFS[F]) list(dir int) ([]string, error) {
	entries, err := f.d.ReadDir(f.at(dir).name)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (f *diskFS[F]) readAt(fd int, p []byte, off int64) (int, error) {
	n, err := f.at(fd).file.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (f *diskFS[F]) writeAt(fd int, bufs [][]byte, off int64) (all int, err error) {
	o := f.at(fd)
	f.before("write", o.name)
	var p []byte
	for _, b := range bufs {
		p = append(p, b...)
	}
	n, err := o.file.WriteAt(p, off)
	if errors.Is(err, io.ErrShortWrite) {
		return n, nil
	}
	return n, err
}

func (f *diskFS[F]) hurry(int) error { return nil }

func (f *diskFS[F]) truncate(fd int) error {
	f.before("truncate", f.at(fd).name)
	return f.at(fd).file.Truncate(0)
}

func (f *diskFS[F]) allocate(fd int, size int64) error { return f.at(fd).file.Truncate(size) }

func (f *diskFS[F]) chmod(fd int, perm uint32) error {
	return f.at(fd).file.Chmod(fs.FileMode(perm))
}

func (f *diskFS[F]) chmodAt(dir int, name string, perm uint32) error {
	return f.d.Chmod(f.in(dir, name), fs.FileMode(perm))
}

func (f *diskFS[F]) sync(fd int) error {
	f.before("sync", f.at(fd).name)
	err := f.at(fd).file.Sync()
	f.before("synced", f.at(fd).name) // what comes now is not covered
	return err
}

func (f *diskFS[F]) mkdir(dir int, name string, perm uint32) error {
	f.before("mkdir", f.in(dir, name))
	return f.d.Mkdir(f.in(dir, name), fs.FileMode(perm))
}

func (f *diskFS[F]) rename(dir int, from, to string) error {
	f.before("rename", f.in(dir, from))
	return f.d.RenameNew(f.in(dir, from), f.in(dir, to))
}

func (f *diskFS[F]) replace(dir int, from, to string) error {
	f.before("replace", f.in(dir, from))
	return f.d.Rename(f.in(dir, from), f.in(dir, to))
}

func (f *diskFS[F]) chown(int, uint32, uint32) error { return nil } // a Disk knows no owners

func (f *diskFS[F]) unlink(dir int, name string) error {
	f.before("unlink", f.in(dir, name))
	return f.d.Remove(f.in(dir, name))
}

func (f *diskFS[F]) rmdir(dir int, name string) error { return f.d.Remove(f.in(dir, name)) }
func (f *diskFS[F]) lock(int) error                   { return nil }
func (f *diskFS[F]) unlock(int) error                 { return nil }

// Encode gives the file of a record.
func Encode(stream string, gen uint64, machine, payload string) []byte {
	h := header{stream: stream, generation: gen, writer: none, machine: Options{MachineID: machine}.machine()}
	return encode(h, []byte(payload))
}

// EncodeNewer gives a file of a format that does not exist yet.
func EncodeNewer() []byte { return newer("2") }

// OpenFileSetOnDisk is OpenFileSet on a disk in memory.
func OpenFileSetOnDisk[F diskFile](d disk[F], how OnDisk, dir string, o Options) (*FileSet, error) {
	sys := &diskFS[F]{d: d, OnDisk: how, open: map[int]*opened[F]{}}
	return openFileSetOn(context.Background(), sys, dir, o, startOnDisk)
}
