// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"context"
	"io"
	"net/rpc"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Environment of the disk's process.
const (
	diskImageVar = "BELAY_FAULTS_DISK_IMAGE"
	diskMountVar = "BELAY_FAULTS_DISK_MOUNT"
)

// diskName is the name of the disk that begins as an image: unlike that of any other disk of the machine.
func diskName(image string) string { return "disk-" + filepath.Base(filepath.Dir(image)) }

// Event is one thing that happened to a disk: a write, a flush, or a mark by the test.
type Event struct {
	Off   int64
	Data  []byte
	Flush bool
	Mark  *Mark
}

// Mark is a line of a journal, in its place among the writes.
type Mark struct {
	Stream string
	Value  int
	Done   bool
}

// Fault says which write or flush to come fails with EIO, counted from 1: that one alone. Ever since, the disk is as good as before.
type Fault struct {
	Flush bool
	Nth   int
}

// Counts says how many writes and flushes came since the last Fault was set, whether it came to it, and how many wait by now.
type Counts struct {
	Writes, Flushes, Waiting int
	Failed                   bool
}

// disk is a file whose every write and flush is recorded, and may fail or wait. It runs in a process of its own: one that both waits
// for a disk and is the disk could not even be killed.
type disk struct {
	fs.Inode
	mu     sync.Mutex
	free   *sync.Cond
	size   int64
	data   pages
	log    []Event
	fault  Fault
	counts Counts
	held   bool
	holds  int // how many there were
}

var (
	_ fs.NodeGetattrer = (*disk)(nil)
	_ fs.NodeOpener    = (*disk)(nil)
	_ fs.NodeReader    = (*disk)(nil)
	_ fs.NodeWriter    = (*disk)(nil)
	_ fs.NodeFsyncer   = (*disk)(nil)
	_ fs.NodeAllocater = (*disk)(nil)
)

func (d *disk) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = 0o600, uint64(d.size)
	return 0
}

// Open keeps the file out of the page cache: what the test sees is what the disk was told.
func (d *disk) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

func (d *disk) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dest = dest[:max(0, min(int64(len(dest)), d.size-off))]
	for done := int64(0); done < int64(len(dest)); {
		n, at := (off+done)/pageSize, (off+done)%pageSize
		part := dest[done:min(done+pageSize-at, int64(len(dest)))]
		clear(part)
		if page := d.data[n]; page != nil {
			copy(part, page[at:])
		}
		done += int64(len(part))
	}
	return fuse.ReadResultData(dest), 0
}

func (d *disk) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wait()
	d.counts.Writes++
	if !d.fault.Flush && d.counts.Writes == d.fault.Nth {
		d.counts.Failed = true
		return 0, syscall.EIO
	}
	d.data.apply(off, data, func() bool { return false })
	d.log = append(d.log, Event{Off: off, Data: slices.Clone(data)})
	return uint32(len(data)), 0
}

func (d *disk) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wait()
	d.counts.Flushes++
	if d.fault.Flush && d.counts.Flushes == d.fault.Nth {
		d.counts.Failed = true
		return syscall.EIO
	}
	d.log = append(d.log, Event{Flush: true})
	return 0
}

// wait waits as long as the disk is held. Called with mu.
func (d *disk) wait() {
	d.counts.Waiting++
	for d.held {
		d.free.Wait()
	}
	d.counts.Waiting--
}

// Allocate refuses to discard: a disk may do without.
func (d *disk) Allocate(context.Context, fs.FileHandle, uint64, uint64, uint32) syscall.Errno {
	return syscall.EOPNOTSUPP
}

// service is what the test asks of the disk.
type service struct{ disk *disk }

func (s service) Mark(m Mark, _ *struct{}) error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.disk.log = append(s.disk.log, Event{Mark: &m})
	return nil
}

func (s service) Log(_ struct{}, out *[]Event) error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	*out = s.disk.log
	return nil
}

func (s service) SetFault(f Fault, _ *struct{}) error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.disk.fault, s.disk.counts = f, Counts{Waiting: s.disk.counts.Waiting}
	return nil
}

func (s service) Counts(_ struct{}, out *Counts) error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	*out = s.disk.counts
	return nil
}

// Hold makes every write and flush wait for so long from now on, however long they had to before.
func (s service) Hold(length time.Duration, _ *struct{}) error {
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holds++
	d.held = length > 0
	d.free.Broadcast()
	if d.held {
		nth := d.holds
		time.AfterFunc(length, func() { d.release(nth) })
	}
	return nil
}

// release ends a hold, but for one that another has followed. It goes by their number, as a timer that is stopped may have begun to call it.
func (d *disk) release(nth int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if nth == d.holds {
		d.held = false
		d.free.Broadcast()
	}
}

// Save writes what the disk holds by now to a file.
func (s service) Save(file string, _ *struct{}) error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return s.disk.data.write(file, s.disk.size)
}

type stdio struct {
	io.Reader
	io.WriteCloser
}

// diskRole serves a disk until its standard input ends or it is killed.
func diskRole() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	image := os.Getenv(diskImageVar)
	info, err := os.Stat(image)
	if err != nil {
		return err
	}
	data, err := readPages(image)
	if err != nil {
		return err
	}
	d := &disk{size: info.Size(), data: data}
	d.free = sync.NewCond(&d.mu)
	root := &fs.Inode{}
	server, err := fs.Mount(os.Getenv(diskMountVar), root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, MaxWrite: 1 << 20, FsName: "belay-faults", Name: "belay"},
		OnAdd: func(ctx context.Context) {
			root.AddChild(diskName(image), root.NewPersistentInode(ctx, d, fs.StableAttr{Mode: syscall.S_IFREG}), true)
		},
	})
	if err != nil {
		return err
	}
	if err := rpc.RegisterName("Disk", service{d}); err != nil {
		return err
	}
	rpc.ServeConn(stdio{os.Stdin, os.Stdout})
	return server.Unmount()
}
