// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"errors"
	"io"
	"sync"
)

// openHow is what a file is opened for. No way follows a link, blocks on a special file, or is inherited by a child
// process.
type openHow int

const (
	openRead  openHow = iota // for reading
	openDir                  // a directory, for reading
	openNew                  // for writing; must not exist; mode 0600 within the umask
	openLock                 // for reading; made where it is not there
	openWrite                // for writing; must exist
)

// storage is how far a file system keeps what it was told to keep.
type storage int

const (
	storageOther   storage = iota // may lose an acknowledged write
	storageDurable                // promise A1 was tested on it
	storageNetwork                // locks and renames do not hold between its clients
)

// fsys is every system call that the protocol makes, so that a test can count them, fail them, or play a whole disk.
// A directory is an open descriptor and a name in it; only openPath, statPath and resolve take paths. Errors are, or
// wrap, the system's.
type fsys interface {
	// openAt opens an entry of a directory, never anything outside of it. "." is the directory again.
	openAt(dir int, name string, how openHow) (fd int, err error)
	// openPath opens a directory by its path, and follows links.
	openPath(path string) (fd int, err error)
	close(fd int) error

	// stat, statAt and statPath tell what something is; only statPath follows links.
	stat(fd int) (fileInfo, error)
	statAt(dir int, name string) (fileInfo, error)
	statPath(path string) (fileInfo, error)
	// resolve gives a path without links.
	resolve(path string) (string, error)
	// kindOf tells what the file system below a descriptor is worth, and room how many bytes it has free for us.
	kindOf(fd int) (storage, error)
	room(fd int) (int64, error)
	// list gives the names in a directory, in no order.
	list(dir int) ([]string, error)
	// readAt reads up to len(p) bytes; 0 and no error is the end.
	readAt(fd int, p []byte, off int64) (int, error)

	// writeAt writes the buffers in a row and returns how many bytes were taken, which may be fewer.
	writeAt(fd int, bufs [][]byte, off int64) (int, error)
	// hurry asks for what was written to be on its way to the disk. It promises nothing, but an error is one of
	// writing.
	hurry(fd int) error
	truncate(fd int) error
	// allocate reserves size bytes for an empty file.
	allocate(fd int, size int64) error
	chmod(fd int, perm uint32) error
	chmodAt(dir int, name string, perm uint32) error
	chown(fd int, uid, gid uint32) error
	sync(fd int) error
	mkdir(dir int, name string, perm uint32) error // within the umask
	// rename never replaces: where the new name is taken it fails. replace does.
	rename(dir int, from, to string) error
	replace(dir int, from, to string) error
	unlink(dir int, name string) error
	rmdir(dir int, name string) error
	// lock takes the lock of a file or fails at once; unlock gives it up also where a child still holds the
	// descriptor.
	lock(fd int) error
	unlock(fd int) error
}

// fileInfo is what the protocol looks at.
type fileInfo struct {
	id      fileID
	size    int64
	links   uint64
	uid     uint32
	gid     uint32
	perm    uint32 // with the sticky bit
	regular bool
	dir     bool
}

type fileID struct{ dev, ino uint64 }

const (
	permFile   = 0o600
	permDir    = 0o700
	permSticky = 0o1000
	// writableByOthers and open are modes that no file, and no directory, of ours has.
	writableByOthers = 0o022
	openToOthers     = 0o077
)

// checkFile returns an error that matches ErrUntrusted for what is not a plain file of ours.
func (i fileInfo) checkFile(uid uint32) error {
	switch {
	case !i.regular:
		return errors.New("not a regular file")
	case i.links != 1:
		return errors.New("has a second name")
	case i.uid != uid:
		return errors.New("has another owner")
	case i.perm&writableByOthers != 0:
		return errors.New("is writable for others")
	}
	return nil
}

// barrier makes the entries of one directory durable. Callers that arrive while an fsync runs share the next one.
type barrier struct {
	sys fsys
	dir int // only opens a new descriptor after a failure

	turn chan struct{} // holds one token for the length of an fsync; guards fd
	fd   int           // never fsynced again after an error, but replaced

	mu   sync.Mutex
	next *flight // who arrives now waits for this one
}

// flight is one fsync to come, and what came of it. Its fields belong to the goroutine that holds the turn.
type flight struct {
	done bool
	err  error
}

// wait returns after an fsync of the directory that began after wait was called.
func (b *barrier) wait() error {
	b.mu.Lock()
	if b.next == nil {
		b.next = &flight{}
	}
	f := b.next
	b.mu.Unlock()

	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	if f.done {
		return f.err
	}
	b.mu.Lock()
	b.next = nil // who arrives from here on may have changed the directory after the fsync below began
	b.mu.Unlock()
	f.done, f.err = true, b.flush()
	return f.err
}

func (b *barrier) flush() error {
	if b.fd < 0 {
		fd, err := b.sys.openAt(b.dir, ".", openDir)
		if err != nil {
			return err
		}
		b.fd = fd
	}
	err := b.sys.sync(b.fd)
	if err != nil {
		b.sys.close(b.fd)
		b.fd = -1
	}
	return err
}

func (b *barrier) close() {
	if b.fd >= 0 {
		b.sys.close(b.fd)
	}
}

// writeAll hands the buffers over, and goes on where the system stopped short. It changes bufs.
func writeAll(sys fsys, fd int, bufs [][]byte, off int64) error {
	for len(bufs) > 0 {
		n, err := sys.writeAt(fd, bufs, off)
		if err == nil && n == 0 {
			err = io.ErrNoProgress
		}
		if err != nil {
			return err
		}
		off += int64(n)
		for len(bufs) > 0 && n >= len(bufs[0]) {
			n -= len(bufs[0])
			bufs = bufs[1:]
		}
		if len(bufs) > 0 {
			bufs[0] = bufs[0][n:]
		}
	}
	return nil
}
